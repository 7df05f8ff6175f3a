"""At stake: over a slow network a second visit is there at once, as little is sent; what comes is read at once.

The network is the browser's own emulation: each request waits for its answer as long as a round trip takes, and
setting up a connection costs nothing more. A browser that has no connection to the server any more (20 s after the last
answer) has one more round trip in front of index.html than is counted here, and one for each further connection that is
opened at the same time.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.page.seen import row
from tests.page.site import Site
from tests.page.visiting import Visit
from tests.steps import Task, spawn
from tests.support import worker

#: Of a phone in a train: a round trip takes 400 ms, and a second has 50 kB.
SLOW = {"offline": False, "latency": 400, "downloadThroughput": 50_000, "uploadThroughput": 50_000}


class Sent:
    """What the network has brought since it was asked last: the paths, and how many bytes they took."""

    def __init__(self, visit: Visit) -> None:
        self._paths: dict[str, str] = {}
        self._cached: set[str] = set()
        self.bytes = 0
        client = visit.context.new_cdp_session(visit.page)
        client.send("Network.enable")
        client.send("Network.emulateNetworkConditions", SLOW)
        client.on(
            "Network.requestWillBeSent", lambda one: self._paths.update({one["requestId"]: one["request"]["url"]})
        )
        client.on("Network.requestServedFromCache", lambda one: self._cached.add(one["requestId"]))
        client.on("Network.responseReceived", self._received)
        client.on("Network.dataReceived", self._data)

    def _received(self, one: Any) -> None:
        if one["response"].get("fromDiskCache") or one["response"].get("fromPrefetchCache"):
            self._cached.add(one["requestId"])

    def _data(self, one: Any) -> None:
        self.bytes += one.get("encodedDataLength", 0)

    def paths(self, visit: Visit) -> list[str]:
        """Return the paths that came over the network, and forget them."""
        visit.page.wait_for_load_state("load")
        found = [url for one, url in self._paths.items() if one not in self._cached]
        self._paths.clear()
        return [url.removeprefix(visit.site.url).partition("?")[0] for url in found if url.startswith(visit.site.url)]


def test_a_second_visit_asks_for_no_file_of_the_page(task: Task, visit: Visit) -> None:
    spawn(worker("sleeps", 600), name="works")
    sent = Sent(visit)
    page = visit.open()
    expect(row(page, "works")).to_be_visible()
    first, size = sent.paths(visit), sent.bytes
    assert any(path.endswith("/page.js") for path in first)
    sent.bytes = 0
    page.reload()
    visit.live()
    expect(row(page, "works")).to_be_visible()
    second = sent.paths(visit)
    assert [path for path in second if path.startswith("/static/")] == []
    assert len(second) < 12, second
    assert sent.bytes < 20_000 < size < 300_000


class Rounds:
    """Which requests had to wait for the answers to which others, since the last visit began."""

    def __init__(self, visit: Visit, page: Page) -> None:
        self._url = visit.site.url
        self._begun: dict[str, tuple[float, str]] = {}
        self._answered: dict[str, float] = {}
        client = visit.context.new_cdp_session(page)
        client.send("Network.enable")
        client.send("Network.emulateNetworkConditions", SLOW)
        client.on("Network.requestWillBeSent", self._send)
        client.on("Network.responseReceived", self._receive)
        client.on("Network.requestServedFromCache", lambda one: self._begun.pop(one["requestId"], None))

    def _send(self, one: Any) -> None:
        if one["request"]["url"].startswith(self._url):
            words = f"{one['request']['method']} {one['request']['url'].removeprefix(self._url).partition('?')[0]}"
            self._begun[one["requestId"]] = one["timestamp"], words

    def _receive(self, one: Any) -> None:
        if one["response"].get("fromDiskCache"):
            self._begun.pop(one["requestId"], None)
        self._answered[one["requestId"]] = one["timestamp"]

    def before(self, words: str) -> list[str]:
        """Return a request, and in front of it those that were waited for, one behind the other."""
        (key,) = (key for key, (_, one) in self._begun.items() if one == words)
        found = [words]
        while earlier := [one for one in self._begun if self._answered.get(one, math.inf) < self._begun[key][0]]:
            key = max(earlier, key=lambda one: self._answered[one])
            found.insert(0, self._begun[key][1])
        return found


#: When a worker's row was drawn first, in ms since the visit began.
_DRAWN = """new MutationObserver((_, observer) => {
  if (!document.querySelector('[data-key="t1/works"]')) return;
  window.drawnAt = performance.now();
  observer.disconnect();
}).observe(document, { childList: true, subtree: true });"""


@pytest.mark.parametrize("way", ["reload", "address", "link"])
def test_a_second_visit_waits_for_two_answers(task: Task, visit: Visit, way: str) -> None:
    spawn(worker("sleeps", 600), name="works")
    page = visit.open()
    expect(row(page, "works")).to_be_visible()
    visit.context.add_init_script(_DRAWN)
    again = page if way == "reload" else visit.context.new_page()
    rounds = Rounds(visit, again)
    if way == "reload":
        page.reload()
    else:
        again.goto(visit.site.new_link() if way == "link" else visit.site.url)
    expect(row(again, "works")).to_be_visible()
    for path in ("/api/v1/events", "/api/v1/about"):
        assert rounds.before(f"GET {path}") == ["GET /", f"GET {path}"]
        assert visit.requests.count(f"GET {path}") == 2, "once in each visit"
    print(f"{way}: drawn after {again.evaluate('drawnAt'):.0f} ms")  # Noisy: what counts is counted above.


def test_the_stream_comes_compressed_and_at_once(task: Task, site: Site, visit: Visit) -> None:
    page = visit.open()
    with page.expect_response(lambda one: one.url.startswith(f"{site.url}/api/v1/events")) as streamed:
        page.reload()
    assert streamed.value.headers["content-encoding"] == "gzip"
    spawn(worker("sleeps", 600), name="fresh")
    expect(row(page, "fresh")).to_be_visible()


def test_a_task_that_is_not_there_is_told_in_words_of_the_page(task: Task, visit: Visit) -> None:
    visit.open()
    page = visit.go("/tasks/nope/timeline")
    problem = page.get_by_role("alert").first
    expect(problem).to_contain_text("nope")
    assert "/api/" not in problem.inner_text()
    assert "GET " not in problem.inner_text()


def test_a_file_of_a_result_is_downloaded(task: Task, site: Site, visit: Visit, tmp_path: Any) -> None:
    folder = tmp_path / "reported"
    folder.mkdir()
    (folder / "report.md").write_text("# found", encoding="ascii")
    spawn(["agentctl", "report", "result", "--file", "report.md"], "--cwd", str(folder), name="told")
    site.knows("told", "completed")
    visit.open()
    page = visit.go("/tasks/t1/workers/told/result")
    with page.expect_download() as downloaded:
        page.get_by_role("button", name="Download report.md").click()
    assert downloaded.value.suggested_filename == "report.md"
    assert downloaded.value.path().read_text() == "# found"
