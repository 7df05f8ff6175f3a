"""At stake: the page shows why a worker failed, and tells of what needs a person while they look elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.agent_steps import blocked
from tests.page.seen import group, row, said
from tests.page.visiting import PHONE, WIDE, Visit
from tests.shells import define_shells, subtask_line
from tests.steps import Task, spawn
from tests.support import run, wait_until, worker

REASON = "GPL in a dependency"
FAILS = ["sh", "-c", f"echo checked 40 packages; printf '3 found\\n\\033[31m{REASON}\\033[0m\\n' >&2; exit 1"]
ASKS = worker("asks", "--kind", "confirm", "Delete the old logs?")


# -- why it failed -----------------------------------------------------------------------------------------------------


def test_a_failure_is_told_in_its_row_and_its_last_lines_stand_below_why_and_result(
    task: Task, visiting: Callable[..., Visit]
) -> None:
    spawn(FAILS, "--wait", name="licences", check=False)
    page = visiting(viewport=PHONE).open()
    expect(row(page, "licences")).to_contain_text(f"{REASON} failed (exit_code 1)")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    page = visiting().open("/tasks/t1/workers/licences/why")
    stderr = page.get_by_label("The end of stderr of licences")
    expect(stderr).to_have_text(f"3 found\n{REASON}", use_inner_text=True)
    expect(page.get_by_label("The end of stdout of licences")).to_have_text("checked 40 packages")
    ways = page.get_by_role("region", name="What would change it").or_(page.locator(".why > section").last)
    expect(ways).not_to_contain_text("agentctl")

    page.get_by_role("link", name="Result", exact=True).click()
    expect(stderr).to_contain_text(REASON)
    expect(page.get_by_text("There is no result")).to_have_count(0)

    page.get_by_role("link", name="Why", exact=True).click()
    page.get_by_role("link", name="See its output").click()
    expect(page).to_have_url(re.compile(r"/workers/licences/output\?stream=stderr$"))
    expect(page.get_by_role("main")).to_contain_text(REASON)

    page.go_back()
    page.get_by_role("link", name="Why", exact=True).click()
    page.locator(".why").get_by_role("button", name="Try again").click()
    page.get_by_role("dialog").get_by_role("button", name="Try again").click()
    expect(said(page)).to_contain_text("Started licences-2")


@pytest.mark.parametrize(
    ("writes", "stream"), [("echo halfway; echo {} >&2", "stderr"), ("echo {}", "stdout")], ids=["stderr", "stdout"]
)
def test_the_head_of_a_failed_worker_says_why_and_leads_to_the_stream_that_says_so(
    task: Task, visiting: Callable[..., Visit], writes: str, stream: str
) -> None:
    spawn(["sh", "-c", f"{writes.format(REASON)}; exit 3"], "--wait", name="licences", check=False)

    for viewport in (WIDE, PHONE):
        page = visiting(viewport=viewport).open("/tasks/t1/workers/licences/details")
        head = page.locator(".worker-head")
        expect(head).to_contain_text("failed (exit_code 3)")
        expect(head.get_by_text(REASON)).to_be_in_viewport(ratio=1)
        head.get_by_role("link", name="See its output").click()
        expect(page.get_by_role("button", name=re.compile(rf"^{stream}"))).to_have_attribute("aria-pressed", "true")
        expect(page.locator(".worker-body")).to_contain_text(REASON)
        expect(head.get_by_role("link", name="See its output")).to_have_count(0)
        expect(head.get_by_text(REASON)).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_head_says_nothing_of_an_end_that_is_no_failure(task: Task, visit: Visit) -> None:
    spawn(["sh", "-c", f"echo {REASON} >&2"], "--wait", name="good")
    spawn(["sh", "-c", "exit 3"], "--wait", name="silent", check=False)

    page = visit.open()
    for name, end in (("good", "completed"), ("silent", "failed (exit_code 3)")):
        visit.go(f"/tasks/t1/workers/{name}/details")
        expect(page.locator(".worker-head")).to_contain_text(end)
        expect(page.locator(".said-at-end")).to_have_count(0)


def test_a_failure_in_another_task_is_told_with_its_last_lines_and_the_way_there(task: Task, visit: Visit) -> None:
    define_shells()
    fails = subtask_line("look", f"echo {REASON} >&2; exit 3")
    spawn(["sh", "-c", f"{fails} >/dev/null"], "--wait", name="top", check=False)

    page = visit.open("/tasks/t1/workers/top/why")

    expect(page.get_by_label("The end of stderr of shell-1")).to_have_text(REASON)
    page.get_by_role("link", name="All of it: stderr of shell-1").click()
    expect(page).to_have_url(re.compile(r"/tasks/look/workers/shell-1/output\?stream=stderr$"))
    expect(page.locator(".worker-body")).to_contain_text(REASON)


def test_a_link_to_a_question_that_was_answered_says_what_was_answered(task: Task, visit: Visit) -> None:
    spawn(ASKS, name="asks")
    blocked("asks")
    run("answer", "asks", "--id", "q1", "no")
    task.ended("asks")

    page = visit.open("/tasks/t1/workers/asks?question=q1")

    expect(page.get_by_role("status").filter(has_text="q1")).to_contain_text("q1 was answered: ✓ no by user at")
    visit.go("/tasks/t1/workers/asks?question=q7")
    expect(page.get_by_text("asks has no question q7")).to_be_visible()


# -- notifications of the browser --------------------------------------------------------------------------------------

#: What a tab tells, and the number at its icon, instead of the desktop; and a tab that is hidden where a test says so.
_DESKTOP = """
globalThis.isBehind = false;
globalThis.told = [];
Object.defineProperty(Document.prototype, 'hidden', { get: () => isBehind });
Object.defineProperty(Document.prototype, 'visibilityState', { get: () => (isBehind ? 'hidden' : 'visible') });
globalThis.Notification = class {
  static permission = 'granted';
  static requestPermission = async () => 'granted';
  constructor(title, more) { Object.assign(this, more, { title }); told.push(this); }
  close() { this.isClosed = true; this.onclose?.(); }
};
Navigator.prototype.setAppBadge = async (count) => { globalThis.badge = count; };
Navigator.prototype.clearAppBadge = async () => { globalThis.badge = 0; };
"""
_TOLD = "told.filter((one) => !one.isClosed).map((one) => [one.title, one.body])"


def hide(page: Page, is_behind: bool = True) -> None:
    page.evaluate(f"isBehind = {str(is_behind).lower()}; document.dispatchEvent(new Event('visibilitychange'))")


def told(*pages: Page) -> list[list[str]]:
    """Return what the tabs have told together and still show."""
    return sorted(one for page in pages for one in page.evaluate(_TOLD))


def until_told(wanted: list[list[str]], *pages: Page) -> None:
    wait_until(lambda: told(*pages), accept=lambda found: found == wanted, what=f"notifications: {wanted}")


def test_hidden_tabs_tell_each_thing_once_and_a_click_leads_to_it(task: Task, visit: Visit) -> None:
    spawn(["sh", "-c", "exit 1"], "--wait", name="before", check=False)
    visit.context.add_init_script(_DESKTOP)
    page = visit.open()
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("switch", name="Notifications").check()
    page.get_by_role("button", name="Close").click()
    other = visit.another("/tree")
    expect(other.get_by_role("tree")).to_be_visible()

    hide(other)
    spawn(ASKS, name="seen")
    expect(row(page, "seen").get_by_role("article")).to_be_visible()
    expect(other).to_have_title(re.compile(r"^\(1\)"))  # It has heard of it while the other one was seen.
    hide(page)
    spawn(ASKS, name="asks")
    spawn(FAILS, "--wait", name="licences", check=False)

    failure, question = ["licences failed (exit_code 1)", REASON], ["asks asks", "Delete the old logs?"]
    until_told([question, failure], page, other)
    assert 2 in (page.evaluate("globalThis.badge"), other.evaluate("globalThis.badge"))
    run("answer", "asks", "--id", "q1", "yes")
    until_told([failure], page, other)

    teller = next(one for one in (page, other) if told(one))
    teller.evaluate("told.find((one) => one.title.startsWith('licences')).onclick()")
    expect(teller).to_have_url(re.compile(r"/tasks/t1/workers/licences$"))


def test_nothing_is_told_where_nobody_asked_for_it_or_somebody_looks(task: Task, visit: Visit) -> None:
    visit.context.add_init_script(_DESKTOP)
    page, other = visit.open(), visit.another("/")
    expect(group(page, "Done").or_(page.get_by_text("No worker")).first).to_be_visible()
    hide(other)
    spawn(ASKS, name="asks")
    expect(other).to_have_title(re.compile(r"^\(1\)"))  # It heard of it while hidden.
    other.evaluate("localStorage.setItem('agentctl.tell', 'yes')")
    spawn(ASKS, name="again")
    expect(other).to_have_title(re.compile(r"^\(2\)"))

    assert told(page, other) == []
