"""At stake: over a slow network a second visit is there at once, as little is sent; what comes is read at once."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

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
    assert sum(path.startswith("/static/") for path in first) > 30
    sent.bytes = 0
    page.reload()
    visit.live()
    expect(row(page, "works")).to_be_visible()
    second = sent.paths(visit)
    assert [path for path in second if path.startswith("/static/")] == []
    assert len(second) < 12, second
    assert sent.bytes < 20_000 < size < 300_000


class RoundTrips:
    """How often the page has waited for the network, one time behind the other, since this was made.

    The time that the browser's own emulation adds is that of one round trip for each request, with none for making a
    connection: so the number of requests of which each began when an earlier one was answered is what a person waits.
    """

    def __init__(self, visit: Visit) -> None:
        self._begun: dict[str, float] = {}
        self._answered: dict[str, float] = {}
        self.urls: dict[str, str] = {}
        client = visit.context.new_cdp_session(visit.page)
        client.send("Network.enable")
        client.on("Network.requestWillBeSent", self._begin)
        client.on("Network.requestServedFromCache", lambda one: self._begun.pop(one["requestId"], None))
        client.on("Network.responseReceived", self._answer)

    def _begin(self, one: Any) -> None:
        self._begun[one["requestId"]] = one["timestamp"]
        self.urls[one["requestId"]] = one["request"]["url"]

    def _answer(self, one: Any) -> None:
        if not one["response"].get("fromDiskCache"):
            self._answered[one["requestId"]] = one["timestamp"]

    def behind_each_other(self, url: str) -> list[str]:
        """Return the requests that had to be answered one behind the other, up to the one that begins with this."""
        found: list[str] = []
        until = 0.0
        for one, begun in sorted(self._begun.items(), key=lambda item: item[1]):
            answered = self._answered.get(one)
            if answered is not None and begun >= until:
                found.append(self.urls[one])
                until = answered
                if self.urls[one].startswith(url):
                    break
        return found


@pytest.mark.parametrize("how", ["reload", "new tab"])
def test_a_second_visit_shows_the_tasks_after_two_round_trips(task: Task, site: Site, visit: Visit, how: str) -> None:
    """The page itself, and the first events with the proof that they may be sent: a second, over a slow network."""
    spawn(worker("sleeps", 600), name="works")
    page = visit.open()
    expect(row(page, "works")).to_be_visible()
    if how == "new tab":
        visit.page = page = visit.context.new_page()
    Sent(visit)
    trips, begun = RoundTrips(visit), time.monotonic()
    page.reload(wait_until="commit") if how == "reload" else page.goto(f"{site.url}/", wait_until="commit")
    expect(row(page, "works")).to_be_visible()
    print(f"{how}: {time.monotonic() - begun:.2f} s")
    needed = [
        url.removeprefix(site.url).partition("?")[0] for url in trips.behind_each_other(f"{site.url}/api/v1/events")
    ]
    assert needed == ["/", "/api/v1/events"]
    asked = [urlsplit(url).path for url in trips.urls.values()]
    assert "/session" not in asked
    assert [asked.count(f"/api/v1/{what}") for what in ("events", "about")] == [1, 1], "what was asked ahead is used"


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
