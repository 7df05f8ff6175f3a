"""At stake: what is done is done to the marked workers, all of them and no other, and a key in vain does nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.agent_steps import agent, blocked, ends
from tests.page.seen import group, question, row, said, says, settled, tree_item, unfold
from tests.page.visiting import PHONE, Visit
from tests.steps import Task, spawn, statuses
from tests.support import alike, run, wait_until, worker


def box(page: Page, name: str) -> Locator:
    """Return the box before the name of a worker."""
    return page.get_by_role("checkbox", name=f"Mark {name}", exact=True)


def dialog(page: Page) -> Locator:
    return page.get_by_role("dialog")


def marked(page: Page, text: str) -> None:
    """Wait until the head of the page says how many are marked; nothing if none is."""
    expect(page.get_by_role("banner").get_by_role("status")).to_have_text(text)


def at_work(task: Task, *names: str) -> None:
    for name in names:
        spawn(worker("sleeps", 600), name=name)
        task.has("agent.started", name)


def posted(visit: Visit, verb: str) -> int:
    """Return how many requests of an action on several there were; the page has made no other one about workers."""
    made = [one for one in visit.requests if one.startswith("POST /api/")]
    assert {one.split("/")[3] for one in made} <= {"workers"}, made
    return made.count(f"POST /api/v1/workers/{verb}")


# -- what is acted on --------------------------------------------------------------------------------------------------


def test_a_key_acts_on_what_is_marked_and_names_it_before(task: Task, visit: Visit) -> None:
    """The cursor has moved on by then: what it stands on is left alone."""
    at_work(task, *"abcd")
    page = visit.open()
    expect(row(page, "d")).to_be_visible()
    for key in "gjmm":
        page.keyboard.press(key)
    marked(page, "2 marked")
    expect(row(page, "d").get_by_role("link")).to_be_focused()
    page.keyboard.press("x")
    expect(dialog(page).get_by_role("heading")).to_have_text("Cancel 2 marked workers?")
    expect(dialog(page)).to_contain_text("b, c")
    expect(dialog(page)).not_to_contain_text("Left alone")
    dialog(page).get_by_role("button", name="Cancel them").click()
    says(page, "b, c cancelled; nothing of that is left.")
    marked(page, "")
    task.ended("b", "c")
    assert statuses() == {"a": "running", "b": "cancelled", "c": "cancelled", "d": "running"}
    assert posted(visit, "cancel") == 1


def test_who_is_hidden_or_to_whom_it_does_nothing_is_left_alone_and_named(task: Task, visit: Visit) -> None:
    for name in ("bad-1", "bad-2"):
        spawn(["false"], "--wait", name=name, check=False)
    at_work(task, "run-1", "run-2", "other")
    spawn(["true"], "--queue", "--after", "other", name="late")
    page = visit.open()
    expect(row(page, "late")).to_be_visible()
    page.keyboard.press("M")
    marked(page, "6 marked")
    page.keyboard.press("M")
    marked(page, "")
    page.keyboard.press("M")
    page.get_by_role("searchbox").fill("-n:other")
    marked(page, "6 marked, 1 hidden")
    page.get_by_role("searchbox").blur()
    page.keyboard.press("p")
    expect(dialog(page).get_by_role("heading")).to_have_text("Pause 2 marked workers?")
    expect(dialog(page).locator(".left-alone li")).to_have_text(
        [
            "bad-1, bad-2 (failed: there is nothing to pause)",
            "late (queued: there is nothing to pause)",
            "other (hidden by the filter)",
        ]
    )
    dialog(page).get_by_role("button", name="No").click()
    marked(page, "6 marked, 1 hidden")
    page.keyboard.press("r")
    expect(dialog(page).get_by_role("heading")).to_have_text("Start again the work of 2 marked workers?")
    expect(dialog(page)).to_contain_text("bad-1, bad-2")
    page.keyboard.press("Enter")
    says(page, "bad-1, bad-2 tried again.")
    says(page, "bad-1 is tried again as bad-1-2")
    marked(page, "")
    task.ended("bad-1-2", "bad-2-2")
    assert {name for name, status in statuses().items() if status == "running"} == {"run-1", "run-2", "other"}


def test_nothing_is_done_to_marks_that_are_all_hidden_and_escape_takes_them_away(task: Task, visit: Visit) -> None:
    at_work(task, "run-1", "run-2", "other")
    page = visit.open()
    expect(row(page, "other")).to_be_visible()
    page.get_by_role("searchbox").fill("n:run")
    page.get_by_role("searchbox").blur()
    expect(row(page, "other")).to_have_count(0)
    page.keyboard.press("M")
    marked(page, "2 marked")
    page.get_by_role("searchbox").fill("n:other")
    page.get_by_role("searchbox").blur()
    marked(page, "2 marked, 2 hidden")
    page.keyboard.press("x")
    says(page, "no marked worker is shown here: Esc takes the marks away")
    page.keyboard.press("Escape")
    marked(page, "")
    expect(page.get_by_role("searchbox")).to_have_value("n:other")
    page.keyboard.press("Escape")
    expect(page.get_by_role("searchbox")).to_have_value("")
    assert set(statuses().values()) == {"running"}


def test_what_was_refused_is_told_by_name_with_the_reason(task: Task, visit: Visit) -> None:
    """It ended while the question was there; the others are paused all the same."""
    at_work(task, *"abc")
    page = visit.open()
    expect(row(page, "c")).to_be_visible()
    page.keyboard.press("M")
    page.keyboard.press("p")
    expect(dialog(page)).to_contain_text("a, b, c")
    run("cancel", "b")
    expect(group(page, "Done")).to_contain_text("1")
    dialog(page).get_by_role("button", name="Pause them").click()
    says(page, "a, c paused. 1 of 3 not done:")
    says(page, "b cannot be paused: it is over")
    assert {row["agentInstance"] for row in run("list", "--json").json if row["paused"]} == {"a", "c"}
    for name in "ac":
        expect(row(page, name)).to_contain_text("paused")
    page.keyboard.press("M")
    page.keyboard.press("p")
    expect(dialog(page).get_by_role("heading")).to_have_text("Continue 2 marked workers?")
    page.keyboard.press("Enter")
    says(page, "a, c continued.")


def test_what_was_refused_leads_to_its_next_step(task: Task, visit: Visit, tmp_path: Path) -> None:
    """It was tried again elsewhere while the question was there."""
    once = f"test -e {tmp_path}/once && exec sleep 600; touch {tmp_path}/once; exit 1"
    spawn(["sh", "-c", once], "--wait", name="a", check=False)
    at_work(task, "b")
    page = visit.open()
    expect(row(page, "a")).to_be_visible()
    page.keyboard.press("M")
    page.get_by_role("button", name="Try again…").click()
    run("retry", "a")
    task.has("agent.started", "a-2")
    dialog(page).get_by_role("button", name="Try again").click()
    link = said(page).get_by_role("listitem").get_by_role("link", name="Details of a-2")
    expect(link).to_have_attribute("href", "/tasks/t1/workers/a-2/details")


def test_a_message_goes_to_all_and_continues_who_has_ended(task: Task, visit: Visit) -> None:
    agent("say one", name="done")
    ends("done")
    at_work(task, "works")
    spawn(["false"], "--wait", name="command", check=False)
    page = visit.open()
    expect(row(page, "works")).to_be_visible()
    page.keyboard.press("M")
    page.keyboard.press("s")
    expect(dialog(page).get_by_role("heading")).to_have_text("Send to 2 marked workers?")
    expect(dialog(page)).to_contain_text("A new run continues the session of whoever has ended: done.")
    expect(dialog(page)).to_contain_text("command (failed: there is nothing to send to)")
    page.keyboard.type("say two")
    page.keyboard.press("Control+Enter")
    says(page, "done, works got it.")
    says(page, "done is continued as done-1")
    assert ends("done-1")["result"]["finalMessage"] == "two"
    assert [event["agentInstance"] for event in task.events("message.sent")] == ["works"]
    page.keyboard.press("M")
    page.keyboard.press("v")
    expect(dialog(page).get_by_role("heading")).to_have_text(re.compile("Mark as seen . marked workers"))
    page.keyboard.press("Enter")
    says(page, re.compile("command.* marked as seen."))
    expect(group(page, "Failed")).to_have_count(0)


def test_no_answer_is_given_for_several(task: Task, visit: Visit) -> None:
    for name in ("a", "b"):
        spawn(worker("asks", "--kind", "confirm", f"Delete what {name} has?"), name=name)
        blocked(name)
    page = visit.open()
    expect(question(page, "b")).to_be_visible()
    box(page, "a").click()
    box(page, "b").click()
    marked(page, "2 marked")
    assert "nswer" not in page.get_by_role("region", name="The marked workers").inner_text()
    row(page, "b").focus()
    settled(page)
    wait_until(
        lambda: (page.keyboard.press("1"), page.get_by_text("Answered b: Yes").count())[1], what="b to be answered"
    )
    task.ended("b")
    assert statuses()["a"] == "blocked"
    expect(question(page, "a")).to_be_visible()


def test_one_worker_by_itself_is_acted_on_where_it_is_shown(task: Task, visit: Visit) -> None:
    """On its screen no mark is seen; back in the list they are there."""
    at_work(task, *"ab")
    page = visit.open()
    box(page, "a").click()
    marked(page, "1 marked")
    row(page, "b").get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("b")
    marked(page, "")
    page.keyboard.press("x")
    expect(dialog(page).get_by_role("heading")).to_have_text("Cancel b?")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    marked(page, "1 marked")
    expect(box(page, "a")).to_be_checked()


# -- how workers are marked --------------------------------------------------------------------------------------------


def test_boxes_and_ranges_by_the_mouse(task: Task, visit: Visit) -> None:
    visit.context.grant_permissions(["clipboard-read", "clipboard-write"])
    at_work(task, *"abcdef")
    page = visit.open()
    box(page, "b").click()
    box(page, "e").click(modifiers=["Shift"])
    marked(page, "4 marked")
    row(page, "c").get_by_role("link").click(modifiers=["Shift"])
    marked(page, "1 marked")
    expect(box(page, "b")).to_be_checked()
    assert len(visit.context.pages) == 1
    row(page, "a").get_by_role("link").click(modifiers=["Shift"])
    marked(page, "3 marked")
    page.keyboard.press("C")
    says(page, "Copied: a b c --task t1")
    assert page.evaluate("navigator.clipboard.readText()") == "a b c --task t1"
    page.get_by_role("region", name="The marked workers").get_by_role("button", name="Unmark").click()
    marked(page, "")


def test_a_box_by_keys_alone(task: Task, visit: Visit) -> None:
    at_work(task, *"ab")
    page = visit.open()
    expect(row(page, "b")).to_be_visible()
    page.keyboard.press("g")
    expect(row(page, "a").get_by_role("link")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(box(page, "a")).to_be_focused()
    page.keyboard.press("Space")
    expect(box(page, "a")).to_be_checked()
    marked(page, "1 marked")
    page.keyboard.press("Space")
    expect(box(page, "a")).not_to_be_checked()


def test_marks_are_the_same_in_the_tree(task: Task, visit: Visit) -> None:
    at_work(task, *"abc")
    page = visit.open("/tree")
    unfold(page, "t1")
    tree_item(page, "a").locator(".mark-box").click()
    expect(tree_item(page, "a")).to_have_attribute("aria-checked", "true")
    tree_item(page, "b").click(modifiers=["Shift"])
    expect(tree_item(page, "b")).to_have_attribute("aria-checked", "true")
    expect(tree_item(page, "t1")).not_to_have_attribute("aria-checked", re.compile("."))
    marked(page, "2 marked")
    page.keyboard.press("m")
    marked(page, "1 marked")
    expect(tree_item(page, "c")).to_be_focused()
    page.keyboard.press("t")
    expect(box(page, "a")).to_be_checked()
    expect(box(page, "b")).not_to_be_checked()
    page.keyboard.press("x")
    expect(dialog(page)).to_contain_text("Cancel 1 marked worker?")
    page.keyboard.press("Enter")
    says(page, "a cancelled; nothing of that is left.")
    assert statuses() == {"a": "cancelled", "b": "running", "c": "running"}


#: Tells the page that workers are there, or (null) not any more, as the stream does.
_TOLD = """async (workers) => {
  const { takeFleet } = await pageModule('js/store.js');
  takeFleet({ workers });
}"""


def told(page: Page, **workers: str | None) -> None:
    """Tell the page of workers that have ended, each by the time at which it was queued."""
    rows = {
        f"t1/{name}": None if at is None else {
            "taskId": "t1", "agentInstance": name, "agent": "command", "status": "completed", "need": "review",
            "needSince": at, "queuedAt": at, "command": "true",
        }
        for name, at in workers.items()
    }  # fmt: skip
    page.evaluate(_TOLD, rows)
    settled(page)


def test_a_mark_is_of_one_worker_and_goes_with_it(task: Task, visit: Visit) -> None:
    page = visit.read_modules().open()
    told(page, a="1", b="2", c="3")
    page.keyboard.press("M")
    marked(page, "3 marked")
    told(page, a="1", d="4")
    marked(page, "3 marked")
    told(page, a=None)
    marked(page, "2 marked")
    told(page, b="5")
    marked(page, "1 marked")
    expect(box(page, "b")).not_to_be_checked()
    expect(box(page, "c")).to_be_checked()


@pytest.mark.parametrize("size", ["wide", "phone"])
def test_three_thousand_are_marked_while_few_are_drawn(task: Task, visiting: Callable[..., Visit], size: str) -> None:
    visit = visiting(**({"viewport": PHONE, "has_touch": True, "is_mobile": True} if size == "phone" else {}))
    page = visit.read_modules().open()
    told(page, **{f"w{at:04}": f"{at:04}" for at in range(3000)})
    page.keyboard.press("M")
    marked(page, "3,000 marked")
    page.keyboard.press("End")
    expect(box(page, "w0000")).to_be_checked()
    assert page.get_by_role("checkbox").count() < 120
    box(page, "w0000").click()
    marked(page, "2,999 marked")
    page.keyboard.press("v")
    expect(dialog(page)).to_contain_text("Mark as seen 2,999 marked workers?")
    expect(dialog(page)).to_contain_text("w0001, w0002, ")
    expect(dialog(page)).to_contain_text("and 2,899 more")
    expect(dialog(page).get_by_role("button", name="Mark as seen")).to_be_in_viewport()
    page.keyboard.press("Escape")
    page.keyboard.press("Home")
    box(page, "w2999").click()
    box(page, "w2990").click(modifiers=["Shift"])
    marked(page, "2,989 marked")


def test_a_thumb_marks_and_acts_on_a_phone(task: Task, visiting: Callable[..., Visit]) -> None:
    at_work(task, *"abc")
    visit = visiting(viewport=PHONE, has_touch=True, is_mobile=True)
    page = visit.open()
    for name in "ab":
        size = box(page, name).bounding_box()
        assert size is not None
        assert min(size["width"], size["height"]) >= 44
        box(page, name).tap()
    marked(page, "2 marked")
    bar = page.get_by_role("region", name="The marked workers")
    expect(bar.get_by_role("button").first).to_be_visible()
    for button in bar.get_by_role("button").all():
        size = button.bounding_box()
        assert size is not None
        assert size["height"] >= 44
    assert page.evaluate("document.scrollingElement.scrollWidth") <= PHONE["width"]
    bar.get_by_role("button", name="Cancel…").tap()
    dialog(page).get_by_role("button", name="Cancel them").tap()
    says(page, "a, b cancelled; nothing of that is left.")
    assert statuses() == {"a": "cancelled", "b": "cancelled", "c": "running"}


# -- keys in vain ------------------------------------------------------------------------------------------------------


def in_vain(page: Page, key: str, why: str) -> None:
    """Press a key that does nothing, and type on; each line that says why is dismissed before the next one."""
    page.keyboard.press(key)
    page.keyboard.type("xrpsnvmM /t?1D")  # At once: a second later each letter is a key again.
    page.keyboard.press("Enter")
    says(page, why)
    settled(page)
    expect(dialog(page)).to_have_count(0)
    expect(page.get_by_role("status").get_by_text(why, exact=True)).to_have_count(1)
    marked(page, "")
    # As nobody can: the cursor stays. Else the next key could say nothing where it has the same to say.
    said(page).get_by_role("button", name="Dismiss").evaluate_all("(all) => all.forEach((one) => one.click())")
    expect(said(page)).to_have_count(0)
    page.keyboard.press("ArrowLeft")  # Not a text: the next key counts.


def test_a_key_that_does_nothing_says_why_and_what_is_typed_then_does_nothing(task: Task, visit: Visit) -> None:
    spawn(["false"], "--wait", name="a", check=False)
    at_work(task, "b")
    page = visit.open()
    in_vain(page, "x", "no worker is under the cursor")
    page.keyboard.press("g")
    expect(row(page, "a").get_by_role("link")).to_be_focused()
    before = page.url
    for key, why in (
        ("x", "a is failed: there is nothing to cancel"), ("p", "a is failed: there is nothing to pause"),
        ("s", "a is failed: there is nothing to send to"), ("i", "a asks nothing"), ("3", "a asks nothing"),
        ("D", "a asks nothing"), ("z", "z does nothing here: ? shows the keys"),
        ("w", "w does nothing here: ? shows the keys"),
    ):  # fmt: skip
        in_vain(page, key, why)
    assert page.url == before
    page.keyboard.press("j")
    in_vain(page, "r", "b is running: there is nothing to start again")
    in_vain(page, "v", "b is running: there is nothing to look at")
    for name in ("a", "b"):
        box(page, name).click()
    box(page, "b").click()
    page.keyboard.press("p")
    says(page, "a is failed: there is nothing to pause")
    assert {one for one in visit.requests if one.startswith("POST /api")} == set()
    assert statuses() == {"a": "failed", "b": "running"}


def test_a_button_that_has_the_focus_is_not_pressed_by_what_is_typed_in_vain(task: Task, visit: Visit) -> None:
    spawn(worker("asks", "--kind", "confirm", "Delete the old logs?"), name="asks")
    blocked("asks")
    page = visit.open()
    question(page, "asks").get_by_role("button", name="Yes").focus()
    for typed in ("z ", "q\n"):
        page.keyboard.type(typed)
        settled(page)
    expect(question(page, "asks").get_by_role("button", name="Yes")).to_be_enabled()
    assert statuses() == {"asks": "blocked"}
    assert [one for one in visit.requests if one.startswith("POST /api")] == []


#: Presses a key that does nothing, and another one so many milliseconds later, by the time of their events.
_LATER = """async (ms) => {
  const press = (key, at) => {
    const event = new KeyboardEvent('keydown', { key, bubbles: true });
    Object.defineProperty(event, 'timeStamp', { value: at });
    document.body.dispatchEvent(event);
  };
  const now = performance.now();
  press('z', now);
  press('?', now + ms);
  for (let turn = 0; turn < 100; turn += 1) await null;
  return Boolean(document.querySelector('dialog[open]'));
}"""


@pytest.mark.parametrize(("ms", "acts"), [(999, False), *alike((1001, True))])
def test_keys_act_again_after_a_second(task: Task, visit: Visit, ms: int, acts: bool) -> None:
    assert visit.open().evaluate(_LATER, ms) is acts


def test_letters_behind_f_are_no_keys_wherever_the_focus_was(task: Task, visit: Visit) -> None:
    at_work(task, "fox")
    page = visit.open("/tree")
    unfold(page, "t1")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.type("ffox")  # In one go: a second later each letter is a key again.
    expect(tree_item(page, "fox")).to_be_focused()
    expect(dialog(page)).to_have_count(0)
    page.wait_for_function("() => new Promise((done) => setTimeout(() => done(true), 1001))")
    page.keyboard.type("fzzx")
    says(page, "no line begins with zzx")


# -- who may only look -----------------------------------------------------------------------------------------------


class TestReadOnly:
    """A page that may only look."""

    @pytest.fixture
    def options(self) -> list[str]:
        """Options of the server."""
        return ["--read-only"]

    def test_nothing_is_marked(self, task: Task, visit: Visit) -> None:
        at_work(task, "a")
        page = visit.open()
        expect(row(page, "a")).to_be_visible()
        expect(page.get_by_role("checkbox")).to_have_count(0)
        page.keyboard.press("g")
        for key in "mMxn":
            page.keyboard.press(key)
            says(page, "this page may only look")
            said(page).get_by_role("button", name="Dismiss").click()
            expect(said(page).locator(".line")).to_have_count(0)
            page.keyboard.press("ArrowLeft")
        expect(dialog(page)).to_have_count(0)
