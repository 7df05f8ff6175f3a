"""At stake: a server that hangs, or a network that is gone, is seen as such; and a click says what becomes of it."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.agent_steps import agent, ends, plays
from tests.page.seen import group, insist, pressed, question, row, said, tree_item, unfold
from tests.page.site import Site
from tests.page.test_restart import ASKS
from tests.page.test_result_files import told
from tests.page.visiting import Visit
from tests.steps import Task, spawn
from tests.support import run, wait_until, worker

#: Within 5 s, on a machine that does other things too.
SEEN_MS = 12_000
#: The page gets a sign of life of the stream where the test calls `giveSign`, and what comes on it with `goOn`.
_SIGN_FIRST = """
const real = window.fetch;
window.fetch = async (...args) => {
  const answer = await real(...args);
  if (!String(args[0]).includes('/api/v1/events?')) return answer;
  const reader = answer.body.getReader();
  const sign = new Promise((done) => { window.giveSign = done; });
  const rest = new Promise((done) => { window.goOn = done; });
  return new Response(new ReadableStream({ async start(to) {
    await Promise.race([sign, rest]);
    const ping = () => to.enqueue(new TextEncoder().encode(': ping\\n\\n'));
    ping();
    const pings = setInterval(ping, 1000);  // A server that is silent for 4 s hangs.
    await rest;
    clearInterval(pings);
    for (let part = await reader.read(); !part.done; part = await reader.read()) to.enqueue(part.value);
    to.close();
  } }), { status: answer.status, headers: answer.headers });
};
"""
#: A request has a tenth of its time.
_IMPATIENT = "const inTime = AbortSignal.timeout; AbortSignal.timeout = (ms) => inTime.call(AbortSignal, ms / 10);"


@contextmanager
def hanging(site: Site) -> Iterator[None]:
    """Have the server hang within the block."""
    os.kill(site.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(site.process.pid, signal.SIGCONT)


def is_live(page: Page) -> Any:
    """Return what says that the page hears the server."""
    return page.get_by_role("banner").get_by_text("live", exact=True)


def yes(page: Page) -> Any:
    """Return the button that answers."""
    return question(page, "asks").get_by_role("button", name="Yes")


def test_a_server_that_hangs_is_seen_and_a_click_says_so(task: Task, site: Site, visit: Visit) -> None:
    spawn(ASKS, name="asks")
    page = visit.open()
    expect(question(page, "asks")).to_be_visible()
    with hanging(site):
        expect(page.get_by_role("banner")).to_contain_text(re.compile(r"no answer, last seen \d+s"), timeout=SEEN_MS)
        expect(is_live(page)).to_have_count(0)
        clicked = time.monotonic()
        card = question(page, "asks").get_by_role("status")
        insist(page, yes(page).click, card)
        expect(card).to_have_text("Sending…")
        expect(card).to_contain_text("No answer yet.")
        assert time.monotonic() - clicked > 9
        card.get_by_role("button", name="Try again").click()
        expect(card).to_have_text("Sending…")
    visit.live()
    run("wait", "asks")
    assert run("logs", "asks").out.count("answer: yes") == 1


@pytest.mark.parametrize("path", ["/", "/tree"])
def test_a_list_says_whether_the_server_is_heard(task: Task, visit: Visit, path: str) -> None:
    spawn(ASKS, name="asks")
    visit.context.add_init_script(_SIGN_FIRST)
    page = visit.page
    page.goto(visit.site.new_link(path))
    expect(page.get_by_role("main")).to_contain_text("Connecting…")
    expect(page.get_by_role("main")).to_have_attribute("aria-busy", "false")  # From here on the sign alone is news.
    page.wait_for_function("() => window.giveSign")
    page.evaluate("giveSign()")
    expect(page.get_by_role("main")).to_contain_text("Loading…")
    expect(page.get_by_role("banner")).to_contain_text("connecting…")


def test_a_page_is_live_once_it_knows_what_there_is(task: Task, visit: Visit) -> None:
    spawn(ASKS, name="asks")
    visit.context.add_init_script(_SIGN_FIRST)
    page = visit.page
    page.goto(visit.site.new_link("/"))
    expect(page.get_by_role("banner")).to_contain_text("connecting…")
    for key in ("M", "x"):
        page.keyboard.press(key)
        expect(said(page)).to_contain_text("the workers are still being loaded")
        said(page).get_by_role("button", name="Dismiss").click()
        expect(said(page)).to_have_count(0)
    expect(is_live(page)).to_have_count(0)
    page.wait_for_function("() => window.goOn")
    page.evaluate("goOn()")
    visit.live()
    for key in ("Escape", "M"):  # What is typed at once behind a key that did nothing is a text.
        page.keyboard.press(key)
    expect(row(page, "asks").get_by_role("checkbox")).to_be_checked()


@pytest.mark.parametrize(("path", "keys"), [("/tasks/t1/workers/asks", "iDa1"), ("/tree", "o")])
def test_a_key_says_nothing_that_nobody_knows_yet(task: Task, visit: Visit, path: str, keys: str) -> None:
    spawn(ASKS, name="asks")
    visit.context.add_init_script(_SIGN_FIRST)
    page = visit.page
    page.goto(visit.site.new_link(path))
    expect(page.get_by_role("banner")).to_contain_text("connecting…")
    for key in keys:
        page.keyboard.press(key)
        expect(said(page)).to_contain_text("the workers are still being loaded")
        said(page).get_by_role("button", name="Dismiss").click()
        expect(said(page)).to_have_count(0)
    expect(page).to_have_url(re.compile(f"{path}$"))
    page.wait_for_function("() => window.goOn")
    page.evaluate("goOn()")
    visit.live()
    run("cancel", "asks")


def test_without_a_network_nothing_is_green(task: Task, site: Site, visit: Visit) -> None:
    spawn(ASKS, name="asks")
    page = visit.open()
    expect(question(page, "asks")).to_be_visible()
    visit.context.set_offline(True)
    insist(page, yes(page).click, row(page, "asks").get_by_text("the server cannot be reached"))
    expect(is_live(page)).to_have_count(0, timeout=SEEN_MS)
    expect(page.get_by_role("banner")).to_contain_text("offline, last seen")
    visit.context.set_offline(False)
    visit.live()
    pressed(page, "asks", "Yes")
    run("wait", "asks")


def test_a_dialog_says_what_becomes_of_it(task: Task, site: Site, visit: Visit) -> None:
    spawn(["sleep", "60"], name="sleeps")
    page = visit.open("/tasks/t1/workers/sleeps")
    page.keyboard.press("x")
    with hanging(site):
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("button", name="Cancel it").click()
        expect(dialog.get_by_role("status")).to_have_text("Sending…", timeout=SEEN_MS)
        expect(dialog.get_by_role("button", name="Try again")).to_be_visible()
    expect(dialog).to_have_count(0)
    task.ended("sleeps")


def test_a_click_that_looks_for_something_says_so(task: Task, site: Site, visit: Visit) -> None:
    spawn(["sh", "-c", "seq 40000; exec sleep 600"], name="prints")
    page = visit.open("/tasks/t1/workers/prints/output")
    expect(page.get_by_role("region", name="stdout of prints")).to_contain_text("40000")
    said = page.get_by_role("status").filter(has_text="Loading…")
    with page.expect_download(), hanging(site):
        page.get_by_role("button", name="Download").click()
        expect(said).to_be_visible(timeout=SEEN_MS)
    expect(said).to_have_count(0)
    visit.go("/tasks/t1/workers/prints/why")
    again = page.get_by_role("button", name="Look again")
    expect(again).to_be_visible()
    with hanging(site):
        again.click()
        expect(said).to_be_visible(timeout=SEEN_MS)
        expect(page.get_by_role("status").filter(has_text="No answer yet.")).to_be_visible()
        expect(page.get_by_text("It may have been done")).to_have_count(0)
    expect(page.get_by_role("status").filter(has_text="No answer yet.")).to_have_count(0)


def test_a_file_that_comes_slowly_has_an_answer(task: Task, visit: Visit) -> None:
    spawn(["seq", "300000"], "--wait", name="prints")
    page = visit.open("/tasks/t1/workers/prints/output")
    expect(page.get_by_role("region", name="stdout of prints")).to_contain_text("300000")
    page.evaluate("""() => {
      window.told = [];
      const look = () => told.push(...[...document.querySelectorAll('.outstanding')].map((one) => one.innerText));
      new MutationObserver(look).observe(document.body, { childList: true, subtree: true, characterData: true });
    }""")
    network = visit.context.new_cdp_session(page)
    slow = {"offline": False, "latency": 5, "downloadThroughput": 150_000, "uploadThroughput": 150_000}
    network.send("Network.enable")
    network.send("Network.emulateNetworkConditions", slow)
    began = time.monotonic()
    with page.expect_download():
        page.get_by_role("button", name="Download").click()
    assert time.monotonic() - began > 10
    assert set(visit.value("() => told")) == {"Loading…"}


def test_a_dialog_does_not_speak_for_what_is_below_it(task: Task, visit: Visit) -> None:
    spawn(["false"], "--wait", name="a", check=False)
    page = visit.open("/tasks/t1/workers/a/why")
    again = page.get_by_role("button", name="Look again")
    expect(again).to_be_visible()
    page.route("**/workers/a/why", unanswered)
    again.click()
    page.keyboard.press("n")
    expect(page.locator(".said .outstanding")).to_have_text("Loading…")
    expect(page.get_by_role("dialog")).to_be_visible()
    expect(page.get_by_role("dialog").get_by_role("status")).to_have_count(0)


def test_what_could_not_be_fetched_is_there_once_the_network_is(task: Task, visit: Visit) -> None:
    spawn(["sh", "-c", "echo no such file >&2; exit 1"], "--wait", name="fails", check=False)
    page = visit.open("/tasks/t1/workers/fails/output")
    expect(page.get_by_role("region", name="stderr of fails")).to_contain_text("no such file")
    visit.context.set_offline(True)
    page.get_by_role("navigation", name="About fails").get_by_role("link", name="Why").click()
    expect(page.get_by_text("the server cannot be reached").first).to_be_visible()
    visit.context.set_offline(False)
    expect(page.get_by_role("heading", name="What would change it")).to_be_visible()
    expect(page.get_by_text("the server cannot be reached")).to_have_count(0)


def test_an_output_that_could_not_be_fetched_is_there_once_the_network_is(task: Task, visit: Visit) -> None:
    spawn(ASKS, name="asks")
    page = visit.open()
    expect(row(page, "asks")).to_be_visible()
    page.route("**/workers/asks/logs?**", refused)
    row(page, "asks").get_by_role("link").first.click()
    main = page.get_by_role("main")
    expect(main.get_by_role("alert")).to_contain_text("the server cannot be reached")
    page.unroute("**/workers/asks/logs?**")  # Before anything else: the tries become ever rarer.
    main.get_by_role("button", name="Answer", exact=True).first.click()
    expect(question(page, "asks")).to_be_focused()
    expect(page.get_by_role("region", name="stdout of asks")).to_be_attached()
    expect(main.get_by_role("alert")).to_have_count(0)
    run("cancel", "asks")


def test_a_line_of_the_tree_that_could_not_be_fetched_is_there_once_the_network_is(
    task: Task, visit: Visit, tmp_path: Path
) -> None:
    call = {"type": "tool_use", "id": "b3", "name": "Bash", "input": {"command": "npm test"}}
    says = f'say(type="assistant", message={{"id": "m", "role": "assistant", "content": [{call}]}})'
    agent(plays(tmp_path, f"{says}\nme.answer('Done.')\n"), name="a")
    ends("a")
    page = visit.open()
    page.route("**/workers/a/tree", refused)
    page.get_by_role("link", name="Tree").click()
    unfold(page, "t1")
    with page.expect_event("requestfailed"):
        unfold(page, "a")
    page.unroute("**/workers/a/tree")
    expect(tree_item(page, "Bash npm test")).to_be_visible()


def test_who_is_not_there_is_told_once_the_network_is(task: Task, visit: Visit) -> None:
    page = visit.open()
    page.route("**/workers/nobody", refused)
    page.evaluate("history.pushState({}, '', '/tasks/t1/workers/nobody'); dispatchEvent(new PopStateEvent('popstate'))")
    alert = page.get_by_role("main").get_by_role("alert")
    expect(alert).to_contain_text("the server cannot be reached")
    page.unroute("**/workers/nobody")
    expect(alert).to_contain_text("no worker 'nobody' in task t1")


# -- one request alone -------------------------------------------------------------------------------------------------


def refused(route: Route) -> None:
    """Cut a request off."""
    route.abort("connectionreset")


def of_proxy(route: Route) -> None:
    """Answer as a proxy does whose server takes too long: nothing of it proves to come from the server."""
    route.fulfill(status=504, body="504")


def unanswered(route: Route) -> None:
    """Leave a request without an answer."""


def requests(visit: Visit, end: str) -> int:
    """Return how many requests to a path there were."""
    visit.page.evaluate("1")  # Only then does the test hear of them.
    return sum(one.endswith(end) for one in visit.requests)


@pytest.mark.parametrize(
    ("lose", "argv", "tab", "address"),
    [
        pytest.param(refused, ["false"], "Why", "**/workers/a/why", id="a request"),
        pytest.param(of_proxy, ["false"], "Why", "**/workers/a/why", id="an answer of a proxy"),
        pytest.param(refused, worker("sleeps", 600), "Why", "**/workers/a/why", id="what is looked at again and again"),
        pytest.param(refused, ["false"], "Events", "**/tasks/t1/events?**", id="the events"),
        pytest.param(refused, worker("sleeps", 600), "Transcript", "**/workers/a/activity?**", id="what grows"),
    ],
)
def test_one_path_that_is_always_lost_takes_nothing_else_with_it(
    task: Task, visit: Visit, lose: Callable[[Route], None], argv: list[str], tab: str, address: str
) -> None:
    spawn(argv, name="a")
    task.has("agent.started", "a")
    page = visit.open("/tasks/t1/workers/a/details")
    expect(page.get_by_role("main")).to_contain_text("Task")
    path = address.strip("*?")
    page.route(address, lose)
    visit.requests.clear()
    page.get_by_role("navigation", name="About a").get_by_role("link", name=tab).click()
    each = 2 if lose is of_proxy else 1  # What does not come from the server is asked for once more at once.
    wait_until(lambda: requests(visit, path) >= 3 * each, what="some more tries")
    assert requests(visit, "/api/v1/events") <= 1
    expect(is_live(page)).to_be_attached()
    run("cancel", "a", check=False)


def test_a_request_that_takes_too_long_is_not_made_again(task: Task, visit: Visit) -> None:
    spawn(["false"], "--wait", name="a", check=False)
    page = visit.open("/tasks/t1/workers/a/details")
    page.evaluate(_IMPATIENT)
    page.route("**/workers/a/why", unanswered)
    visit.requests.clear()
    page.get_by_role("navigation", name="About a").get_by_role("link", name="Why").click()
    expect(page.get_by_text("the server has not answered within 60 s")).to_be_visible()
    spawn(["true"], "--wait", name="b")
    page.get_by_role("link", name="agentctl").click()
    expect(group(page, "Done")).to_contain_text("Done 2")
    assert (requests(visit, "/why"), requests(visit, "/api/v1/events")) == (1, 0)


def test_a_file_that_one_does_not_wait_for_takes_nothing_else_with_it(
    task: Task, site: Site, visit: Visit, tmp_path: Path
) -> None:
    told(site, tmp_path / "reported", "report.md", b"# Found")
    page = visit.open("/tasks/t1/workers/report/result")
    page.route("**/workers/report/file?**", unanswered)
    view = page.get_by_role("button", name="View report.md")
    with page.expect_request("**/workers/report/file?**"):
        view.click()
    visit.requests.clear()
    view.click()
    spawn(["true"], "--wait", name="b")
    page.get_by_role("link", name="agentctl").click()
    expect(group(page, "Done")).to_be_visible()
    site.knows("b", "completed")
    assert requests(visit, "/api/v1/events") == 0


def test_a_dialog_says_what_it_waits_for(task: Task, site: Site, visit: Visit) -> None:
    page = visit.open()
    waits = page.get_by_role("dialog").get_by_role("status")
    with hanging(site):
        page.keyboard.press("n")
        expect(waits).to_have_text("Loading…")
    expect(waits).to_have_count(0)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Settings").click()
    with hanging(site):
        page.get_by_role("button", name="Log out on this device").click()
        expect(waits).to_have_text("Sending…")
    expect(page.get_by_role("heading", name="Settings")).to_have_count(0)


def test_a_link_to_a_question_says_that_it_is_looked_for(task: Task, site: Site, visit: Visit) -> None:
    spawn(worker("sleeps", 600), name="busy")
    page = visit.open()
    page.route("**/workers/busy", lambda _route: None)
    page.goto(f"{site.url}/tasks/t1/workers/busy?question=q9")
    expect(page.get_by_text("Looking for the question…")).to_be_visible()
