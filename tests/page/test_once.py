"""At stake: a person whose answer was lost presses the button again, and nothing is done twice."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, Route, expect
from playwright.sync_api import TimeoutError as NoSuchThing

from tests.agent_steps import agent, ends, plays
from tests.page.seen import group, insist, leave_lines, question, row, said, says
from tests.page.test_diff import EDIT, comment, opened_after_its_end
from tests.page.visiting import Visit
from tests.repositories import new_repository
from tests.steps import Task, spawn, statuses
from tests.support import run, wait_until, worker

UNREACHABLE = "the server cannot be reached"


def losing(page: Page, address: str, *, times: int = 1) -> None:
    """Cut the connection behind what the next requests to an address have done: the server has carried them out."""

    def cut(route: Route) -> None:
        route.fetch()
        route.abort("connectionreset")

    page.route(address, cut, times=times)


def written(page: Page, key: str, title: str | re.Pattern[str], text: str) -> Locator:
    """Open a dialog by its key and write into it; return it."""
    page.keyboard.press(key)
    dialog = page.get_by_role("dialog", name=title)
    dialog.get_by_role("textbox").first.fill(text)
    return dialog


def sends(page: Page, dialog: Locator, alert: str | None = None) -> None:
    """Send what is in a dialog; it goes away, or says why not."""
    page.keyboard.press("Control+Enter")
    if alert is None:
        expect(dialog).to_have_count(0)
    else:
        expect(dialog.get_by_role("alert")).to_contain_text(alert)


def messages(task: Task, instance: str) -> list[str]:
    """Return what was sent to a worker."""
    return [json.loads(file.read_bytes())["text"] for file in sorted((task.agent(instance) / "inbox").glob("*.json"))]


def test_a_start_whose_answer_was_lost_is_one_worker(task: Task, visit: Visit) -> None:
    page = visit.open()
    losing(page, "**/spawn")
    dialog = written(page, "n", "New worker", "say It is one.")
    sends(page, dialog, UNREACHABLE)
    page.reload()  # What was typed is there, and its key.
    visit.live()
    page.keyboard.press("n")
    expect(dialog.get_by_role("textbox", name="What it should do")).to_have_value("say It is one.")
    sends(page, dialog)
    says(page, "general-1 was started before, and is")
    assert ends("general-1")["result"]["finalMessage"] == "It is one."
    assert list(statuses()) == ["general-1"]
    sends(page, written(page, "n", "New worker", "say It is one."))  # Now it is another one that is meant.
    says(page, re.compile("general-2 is (running|queued)"))
    ends("general-2")


def test_a_start_that_was_changed_behind_a_lost_answer_says_what_was_started(task: Task, visit: Visit) -> None:
    page = visit.open()
    losing(page, "**/spawn")
    dialog = written(page, "n", "New worker", "say one")
    sends(page, dialog, UNREACHABLE)
    dialog.get_by_role("textbox", name="What it should do").fill("say two")
    sends(page, dialog, "general-1. Its answer was lost, and you have changed something since")
    assert list(statuses()) == ["general-1"]
    expect(dialog.get_by_role("textbox", name="What it should do")).to_have_value("say two")
    sends(page, dialog)
    says(page, re.compile("general-2 is (running|queued)"))
    assert [ends(name)["result"]["finalMessage"] for name in ("general-1", "general-2")] == ["one", "two"]
    losing(page, "**/spawn")
    sends(page, written(page, "n", "New worker", "say three"), UNREACHABLE)
    dialog.get_by_role("textbox", name="What it should do").fill("say four")
    sends(page, dialog, "general-3")
    dialog.get_by_role("link", name="Open general-3").click()
    expect(page.get_by_role("heading", name="general-3")).to_be_visible()
    expect(dialog).to_have_count(0)
    ends("general-3")


def test_a_task_whose_answer_was_lost_is_one_task(task: Task, visit: Visit) -> None:
    page = visit.open()
    for address in ("**/api/v1/tasks", "**/spawn"):
        losing(page, address)
    dialog = written(page, "n", "New worker", "say one")
    dialog.get_by_label("Task").select_option("a new task")
    sends(page, dialog, UNREACHABLE)
    sends(page, dialog, UNREACHABLE)  # The task is there; of the worker nothing is known.
    sends(page, dialog)
    (made,) = [one["taskId"] for one in run("tasks", "--json").json if one["title"] == "say one"]
    run("wait-all", "--task", made)
    assert len(run("list", "--task", made, "--json").json) == 1
    losing(page, "**/api/v1/tasks")
    dialog = written(page, "n", "New worker", "say two")
    dialog.get_by_label("Task").select_option("a new task")
    sends(page, dialog, UNREACHABLE)
    dialog.get_by_role("textbox", name="What it should do").fill("say three")
    sends(page, dialog, "The task say-two was made before")
    sends(page, dialog)  # It is for this one.
    run("wait-all", "--task", "say-two")
    assert sorted(one["taskId"] for one in run("tasks", "--json").json) == ["say-one", "say-two", "t1"]


def test_two_tabs_with_one_draft_start_one_worker(task: Task, visit: Visit) -> None:
    first = visit.open()
    written(first, "n", "New worker", "say It is one.")
    second = visit.another()
    second.keyboard.press("n")
    dialog = second.get_by_role("dialog", name="New worker")
    expect(dialog.get_by_role("textbox", name="What it should do")).to_have_value("say It is one.")
    sends(first, first.get_by_role("dialog", name="New worker"))
    says(first, re.compile("general-1 is (running|queued)"))
    sends(second, dialog)
    says(second, "general-1 was started before")
    ends("general-1")
    assert list(statuses()) == ["general-1"]


def test_a_message_whose_answer_was_lost_is_one_message(task: Task, visit: Visit) -> None:
    spawn(worker("sleeps", 600), name="a")
    page = visit.open("/tasks/t1/workers/a")
    losing(page, "**/send")
    dialog = written(page, "s", "Send to a", "hello")
    sends(page, dialog, UNREACHABLE)
    page.keyboard.press("Escape")
    page.keyboard.press("s")  # Its draft and its key are there.
    sends(page, dialog)
    says(page, "Sent to a")
    assert messages(task, "a") == ["hello"]
    losing(page, "**/send")
    dialog = written(page, "s", "Send to a", "one")
    sends(page, dialog, UNREACHABLE)
    dialog.get_by_role("textbox").fill("two")
    sends(page, dialog, "you have changed something since")
    sends(page, dialog)
    assert messages(task, "a") == ["hello", "one", "two"]
    sends(page, written(page, "s", "Send to a", "two"))
    assert messages(task, "a") == ["hello", "one", "two", "two"]


def test_of_two_texts_under_one_key_it_is_not_known_which_was_sent(task: Task, visit: Visit) -> None:
    spawn(worker("sleeps", 600), name="a")
    page = visit.open("/tasks/t1/workers/a")
    page.route("**/send", lambda route: route.abort(), times=1)
    dialog = written(page, "s", "Send to a", "hello")
    sends(page, dialog, UNREACHABLE)
    losing(page, "**/send")
    dialog.get_by_role("textbox").fill("bye")
    page.keyboard.press("Control+Enter")
    # The request is only let through while the browser is asked something.
    wait_until(lambda: page.evaluate("1") and task.events("message.sent"), what="the second text to come")
    expect(dialog.get_by_role("alert")).to_contain_text(UNREACHABLE)
    expect(dialog.get_by_role("button", name="Send")).to_be_enabled()
    dialog.get_by_role("textbox").fill("hello")
    sends(page, dialog, "you have changed something since")
    expect(dialog.get_by_role("textbox")).to_have_value("hello")
    assert messages(task, "a") == ["bye"]


def test_a_message_whose_answer_was_lost_does_not_continue_the_agent_that_has_ended_with_it(
    task: Task, tmp_path: Path, visit: Visit
) -> None:
    """By then it is another request, though the person has changed nothing."""
    go = tmp_path / "go"
    waits = f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.05)\n"
    agent(plays(tmp_path, waits + "me.answer('It is done.')\n"), name="a")
    page = visit.open("/tasks/t1/workers/a")
    losing(page, "**/send")
    dialog = written(page, "s", "Send to a", "hello")
    sends(page, dialog, UNREACHABLE)
    go.touch()
    ends("a")
    page.reload()
    visit.live()
    page.keyboard.press("s")
    dialog = page.get_by_role("dialog", name="Continue a")
    expect(dialog.get_by_role("textbox")).to_have_value("hello")
    sends(page, dialog)
    says(page, "a got it before")
    assert sorted(statuses()) == ["a"]
    page.keyboard.press("s")
    expect(dialog.get_by_role("textbox")).to_have_value("")


def test_a_further_run_whose_answer_was_lost_is_one_run(task: Task, visit: Visit) -> None:
    agent("say hello")
    ends()
    page = visit.open("/tasks/t1/workers/a")
    losing(page, "**/resume")
    dialog = written(page, "s", "Continue a", "say more")
    sends(page, dialog, UNREACHABLE)
    sends(page, dialog)
    says(page, "a is continued as a-1")
    ends("a-1")
    assert sorted(statuses()) == ["a", "a-1"]
    spawn(["false"], "--wait", name="b", check=False)
    page = visit.go("/tasks/t1/workers/b")
    losing(page, "**/retry")
    page.keyboard.press("r")
    dialog = page.get_by_role("dialog", name="Try b again?")
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("alert")).to_contain_text(UNREACHABLE)
    dialog.get_by_role("button", name="Try again").click()
    says(page, "b-2 was started before.")
    assert sorted(statuses()) == ["a", "a-1", "b", "b-2"]


def test_several_get_one_message_each(task: Task, visit: Visit) -> None:
    for name in ("a", "b"):
        spawn(worker("sleeps", 600), name=name)
    page = visit.open()
    page.keyboard.press("M")
    losing(page, "**/workers/send")
    dialog = written(page, "s", re.compile("Send to 2 marked workers"), "hello")
    sends(page, dialog, UNREACHABLE)
    dialog.get_by_role("textbox").fill("bye")
    sends(page, dialog, "They got the first text")
    dialog.get_by_role("textbox").fill("hello")
    sends(page, dialog)
    assert [messages(task, name) for name in ("a", "b")] == [["hello", "hello"]] * 2


def test_an_answer_whose_answer_was_lost_is_given_once(task: Task, visit: Visit) -> None:
    spawn(worker("asks", "--kind", "confirm", "Go?"), name="a")
    page = visit.open()
    losing(page, "**/interact/q1")
    card = question(page, "a")
    given = said(page).get_by_text("a was answered: yes")
    insist(page, card.get_by_role("button", name="Yes").click, card.get_by_role("alert").or_(given))
    expect(given).to_be_visible()
    task.ended("a")
    assert len(task.events("interaction.responded")) == 1


# -- comments ----------------------------------------------------------------------------------------------------------


def test_comments_whose_answer_was_lost_are_one_message(task: Task, visit: Visit, tmp_path: Path) -> None:
    new_repository(Path.cwd())
    agent(plays(tmp_path, EDIT), "--worktree", "--keep")
    wait_until(lambda: run("activity", "a").out, accept=lambda out: "I have changed it." in out, what="its answer")
    page = visit.open("/tasks/t1/workers/a/diff")
    comment(page, "two", "Say why here.")
    losing(page, "**/send")
    tray = page.get_by_role("region", name="Comments to be sent")
    tray.get_by_role("button", name="Send all").click()
    expect(tray.get_by_role("alert")).to_contain_text(UNREACHABLE)
    page.reload()  # The comments are there, and the key of their message.
    visit.live()
    tray.get_by_role("button", name="Send all").click()
    says(page, "Sent to a.")
    assert len(messages(task, "a")) == 1
    comment(page, "two", "One more.")
    losing(page, "**/send")
    tray.get_by_role("button", name="Send all").click()
    expect(tray.get_by_role("alert")).to_contain_text(UNREACHABLE)
    comment(page, "three", "Said behind a lost answer.")
    tray.get_by_role("button", name="Send all").click()
    expect(tray.get_by_role("alert")).to_contain_text("you have changed something since")
    assert len(messages(task, "a")) == 2
    run("cancel", "a")


def test_comments_whose_answer_was_lost_continue_an_ended_agent_once(task: Task, visit: Visit, tmp_path: Path) -> None:
    new_repository(Path.cwd())
    page = opened_after_its_end(visit, tmp_path)
    comment(page, "two", "Say why here.")
    losing(page, "**/resume")
    tray = page.get_by_role("region", name="Comments to be sent")
    tray.get_by_role("button", name="Continue it with all").click()
    expect(tray.get_by_role("alert")).to_contain_text(UNREACHABLE)
    tray.get_by_role("button", name="Continue it with all").click()
    says(page, "a is continued as a-1")
    ends("a-1")
    assert sorted(statuses()) == ["a", "a-1"]


# -- several -----------------------------------------------------------------------------------------------------------


def confirmed(page: Page, title: str | re.Pattern[str], ok: str, *, reload: Callable[[], object] | None = None) -> None:
    """Press the button of a question until its answer comes: the first one is lost.

    Args:
        reload: Opens the question again in the page that was loaded anew.
    """
    dialog = page.get_by_role("dialog", name=title)
    dialog.get_by_role("button", name=ok).click()
    expect(dialog.get_by_role("alert")).to_contain_text(UNREACHABLE)
    if reload is not None:
        page.reload()
        reload()
    dialog.get_by_role("button", name=ok).click()
    expect(dialog).to_have_count(0)


def test_several_that_are_tried_again_together_are_tried_once(task: Task, visit: Visit) -> None:
    spawn(["false"], "--wait", name="a", check=False)
    spawn(["true"], "--after", "a", name="b", check=False)
    task.ended("b")
    page = visit.open("/tasks/t1/workers/b/why")

    def opens() -> None:
        visit.live()
        page.get_by_role("button", name="Try again…").click()

    losing(page, "**/tasks/t1/retry")
    opens()
    confirmed(page, "Try 2 again?", "Try again", reload=opens)
    says(page, "Started a-2, b-2")
    task.ended("a-2", "b-2")
    assert sorted(statuses()) == ["a", "a-2", "b", "b-2"]


def test_marked_ones_that_are_tried_again_are_tried_once(task: Task, visit: Visit) -> None:
    for name in ("a", "b"):
        spawn(["false"], "--wait", name=name, check=False)
    page = visit.open()
    page.keyboard.press("M")
    losing(page, "**/workers/retry")
    page.keyboard.press("r")
    confirmed(page, re.compile("Start again the work of 2"), "Try again")
    task.ended("a-2", "b-2")
    assert sorted(statuses()) == ["a", "a-2", "b", "b-2"]


def tried_again(page: Page, title: str | re.Pattern[str]) -> Locator:
    """Press the button of the question whether something is to be tried again; return the question."""
    dialog = page.get_by_role("dialog", name=title)
    dialog.get_by_role("button", name="Try again").click()
    return dialog


@pytest.mark.parametrize("is_marked", [True, False], ids=["by its mark first", "by its mark then"])
def test_a_marked_worker_is_tried_again_once_also_where_it_is_tried_alone(
    task: Task, visit: Visit, *, is_marked: bool
) -> None:
    for name in ("a", "b"):
        spawn(["false"], "--wait", name=name, check=False)
    page = visit.open()
    losing(page, "**/retry")
    row(page, "a").get_by_role("link").focus()
    page.keyboard.press("m" if is_marked else "r")
    if is_marked:
        page.keyboard.press("r")
    dialog = tried_again(page, "Start again the work of 1 marked worker?" if is_marked else "Try a again?")
    expect(dialog.get_by_role("alert")).to_contain_text(UNREACHABLE)
    task.ended("a-2")
    page.reload()
    visit.live()
    row(page, "a-2").get_by_role("link").focus()
    page.keyboard.press("r" if is_marked else "m")
    if not is_marked:
        page.keyboard.press("r")
    dialog = tried_again(page, "Try a-2 again?" if is_marked else "Start again the work of 1 marked worker?")
    expect(dialog).to_have_count(0)
    assert sorted(statuses()) == ["a", "a-2", "b"]


def test_those_that_are_tried_again_together_are_tried_once_also_where_they_are_marked(
    task: Task, visit: Visit
) -> None:
    spawn(["false"], "--wait", name="a", check=False)
    spawn(["true"], "--after", "a", name="b", check=False)
    task.ended("b")
    page = visit.open("/tasks/t1/workers/b/why")
    losing(page, "**/tasks/t1/retry")
    page.get_by_role("button", name="Try again…").click()
    expect(tried_again(page, "Try 2 again?").get_by_role("alert")).to_contain_text(UNREACHABLE)
    task.ended("a-2", "b-2")
    page = visit.go("/")
    expect(row(page, "a-2")).to_be_visible()
    page.keyboard.press("M")
    page.keyboard.press("r")
    expect(tried_again(page, "Start again the work of 2 marked workers?")).to_have_count(0)
    assert sorted(statuses()) == ["a", "a-2", "b", "b-2"]


def test_a_work_is_tried_again_once_also_where_its_new_try_stands_for_it_by_then(task: Task, visit: Visit) -> None:
    for name in ("a", "b"):
        spawn(["false"], "--wait", name=name, check=False)
    page = visit.open()
    losing(page, "**/workers/a/retry")
    row(page, "a").get_by_role("link").focus()
    page.keyboard.press("r")
    dialog = page.get_by_role("dialog")
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("alert")).to_contain_text(UNREACHABLE)
    task.ended("a-2")
    page.reload()  # The line of `a` was kept where it was; now the newest tries alone are there.
    visit.live()
    row(page, "a-2").get_by_role("link").focus()
    page.keyboard.press("r")
    expect(page.get_by_role("heading", name="Try a-2 again?")).to_be_visible()
    page.keyboard.press("Enter")
    says(page, "a-2 was started before.")
    assert sorted(statuses()) == ["a", "a-2", "b"]
    leave_lines(page)
    page.keyboard.press("M")
    losing(page, "**/workers/retry")
    page.keyboard.press("r")
    dialog.get_by_role("button", name="Try again").click()
    expect(dialog.get_by_role("alert")).to_contain_text(UNREACHABLE)
    task.ended("a-3", "b-2")
    page.reload()
    visit.live()
    expect(row(page, "a-3")).to_be_visible()
    page.keyboard.press("M")
    page.keyboard.press("r")
    confirming = page.get_by_role("dialog", name=re.compile("Start again the work of 2"))
    confirming.get_by_role("button", name="Try again").click()
    expect(confirming).to_have_count(0)
    assert sorted(statuses()) == ["a", "a-2", "a-3", "b", "b-2"]


def test_two_questions_are_answered_once_each(task: Task, visit: Visit) -> None:
    for name in ("a", "b"):
        spawn(worker("asks", "--kind", "confirm", "Go?"), name=name)
    page = visit.open()
    losing(page, "**/interact/q1", times=2)
    for name in ("a", "b"):
        card, given = question(page, name), said(page).get_by_text(f"{name} was answered: yes")

        yes = card.get_by_role("button", name="Yes")

        def press(yes: Locator = yes) -> None:
            with contextlib.suppress(NoSuchThing):  # The card goes once the stream tells of the answer.
                yes.click(timeout=3000)

        insist(page, press, card.get_by_role("alert").or_(given))
        expect(given).to_be_visible()
    task.ended("a", "b")
    assert len(task.events("interaction.responded")) == 2


# -- what has no key ---------------------------------------------------------------------------------------------------


def test_a_worktree_whose_removal_was_not_heard_of_is_told_as_removed(task: Task, visit: Visit) -> None:
    new_repository(Path.cwd())
    spawn(["true"], "--worktree", "--wait", name="a")
    page = visit.open("/tasks/t1/workers/a/diff")
    losing(page, "**/worktree/remove")
    page.get_by_role("button", name="Remove the worktree").click()
    confirmed(page, "Remove the worktree of a?", "Remove it")
    says(page, "The worktree of a was removed, and its branch agentctl/t1/a.")


def test_a_cancel_whose_answer_was_lost_is_no_error_when_it_is_pressed_again(task: Task, visit: Visit) -> None:
    for name in ("a", "b", "c"):
        spawn(worker("sleeps", 600), name=name)
    page = visit.open("/tasks/t1/workers/a")
    losing(page, "**/cancel")
    page.keyboard.press("x")
    confirmed(page, "Cancel a?", "Cancel it")
    says(page, "a cancelled; nothing of it is left.")
    page = visit.go("/")
    page.keyboard.press("M")
    losing(page, "**/workers/cancel")
    page.keyboard.press("x")
    confirmed(page, re.compile("Cancel 2 marked workers"), "Cancel them")
    says(page, "b, c cancelled")
    assert set(statuses().values()) == {"cancelled"}
    assert len(task.events("agent.cancelled")) == 3


def test_a_pause_whose_answer_was_lost_may_be_pressed_again(task: Task, visit: Visit) -> None:
    for name in ("a", "b"):
        spawn(worker("sleeps", 600), name=name)
    page = visit.open()
    page.keyboard.press("M")
    losing(page, "**/workers/pause")
    page.keyboard.press("p")
    confirmed(page, re.compile("Pause 2 marked workers"), "Pause them")
    says(page, "a, b paused.")
    assert [row["paused"] for row in run("list", "--json").json] == [True, True]
    run("cancel", "--all")


def test_a_single_pause_whose_answer_was_lost_is_not_undone_by_its_key(task: Task, visit: Visit) -> None:
    """The stream has told of the pause by then: the same key would let the worker go on."""
    spawn(worker("sleeps", 600), name="a")
    page = visit.open("/tasks/t1/workers/a")
    for address, doing, next_one, already, is_paused in (
        ("pause", "Pause", "Continue", "a is paused already", True),
        ("unpause", "Continue", "Pause", "a is running: there is nothing to continue", False),
    ):
        losing(page, f"**/workers/a/{address}")
        page.keyboard.press("p")
        says(page, f"{doing}: {UNREACHABLE}")
        expect(page.get_by_role("button", name=next_one, exact=True)).to_be_visible()
        page.keyboard.press("p")
        expect(page.get_by_text(already)).to_be_visible()
        page.mouse.click(400, 5)  # What is typed at once behind a key that did nothing does nothing either.
        assert [row["paused"] for row in run("list", "--json").json] == [is_paused]
    page.keyboard.press("p")  # Now it means what it says.
    says(page, "a paused.")
    assert [len(task.events(f"agent.{what}")) for what in ("paused", "unpaused")] == [2, 1]
    run("cancel", "a")


@pytest.mark.parametrize("name", ["pause", "unpause"])
def test_a_single_pause_that_did_not_arrive_is_asked_for_again(task: Task, visit: Visit, name: str) -> None:
    spawn(worker("sleeps", 600), name="a")
    if name == "unpause":
        run("pause", "a")
    page = visit.open("/tasks/t1/workers/a")
    page.route(f"**/workers/a/{name}", lambda route: route.abort("connectionreset"), times=1)
    page.keyboard.press("p")
    says(page, UNREACHABLE)
    page.keyboard.press("p")
    says(page, "a paused." if name == "pause" else "a continues.")
    assert [row["paused"] for row in run("list", "--json").json] == [name == "pause"]
    run("cancel", "a")


def pressed_twice(button: Locator) -> None:
    """Press a button twice, before the page hears what became of the first time."""
    button.evaluate("(one) => { one.click(); one.click(); }")


def test_a_queue_is_held_and_let_go_once_where_the_answer_was_lost(task: Task, visit: Visit) -> None:
    page = visit.open("/tasks/t1")
    for address, words, next_words, done in (
        ("pause", "Hold the queue", "Let the queue go", "The queue of t1 is held: nothing is started."),
        ("unpause", "Let the queue go", "Hold the queue", "The queue of t1 goes on."),
    ):
        losing(page, f"**/tasks/t1/{address}")
        pressed_twice(page.get_by_role("button", name=words))
        says(page, f"{words}: {UNREACHABLE}")
        says(page, done)
        expect(page.get_by_role("button", name=next_words)).to_be_visible()
    assert [len(task.events(f"queue.{what}")) for what in ("held", "let_go")] == [1, 1]


def test_an_end_that_was_looked_at_counts_as_seen_where_the_answer_was_lost(task: Task, visit: Visit) -> None:
    for name in ("a", "b", "c"):
        spawn(["false"], "--wait", name=name, check=False)
    page = visit.open()
    losing(page, "**/workers/a/seen")
    pressed_twice(row(page, "a").get_by_role("button", name="Seen"))
    says(page, f"Mark as seen: {UNREACHABLE}")
    says(page, "a counts as seen.")
    leave_lines(page)
    expect(group(page, "Failed").get_by_role("listitem")).to_have_count(2)
    row(page, "a").get_by_role("link").focus()
    page.keyboard.press("v")
    says(page, "a is looked at already")
    page.mouse.click(400, 5)
    page.keyboard.press("M")
    losing(page, "**/workers/seen")
    page.keyboard.press("v")
    confirmed(page, re.compile("Mark as seen 2 marked workers"), "Mark as seen")
    says(page, "b, c marked as seen.")
    page = visit.go("/")
    expect(group(page, "Done")).to_contain_text("3 failed")
    expect(group(page, "Failed")).to_have_count(0)
