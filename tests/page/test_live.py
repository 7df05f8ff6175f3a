"""At stake: whoever looks at the page sees what runs, as it runs, and what they answer arrives."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from tests.agent_steps import agent, blocked, ends, plays
from tests.page.seen import (
    group,
    groups_in_order,
    insist,
    keys_in_order,
    leave_lines,
    pressed,
    question,
    row,
    says,
    settled,
    typed,
    until_said,
)
from tests.page.visiting import Visit
from tests.steps import Task, spawn
from tests.support import run, wait_until, worker
from tests.tmux import needs_tmux, tmux_window

ASKS = worker("asks", "--kind", "confirm", "Delete the old logs?")


def test_a_worker_that_is_removed_is_gone_from_its_view(task: Task, visit: Visit) -> None:
    spawn(worker("exits", 0), "--wait", name="old")
    page = visit.read_modules().open("/tasks/t1/workers/old/details")
    expect(page.get_by_role("heading", level=1)).to_contain_text("old")
    # Its files may be there yet when the stream has told that it is gone: until then there is an answer.
    with page.expect_response("**/api/v1/tasks/t1/workers/old"):
        page.evaluate("pageModule('js/store.js').then(({ takeFleet }) => takeFleet({ workers: { 't1/old': null } }))")
    expect(page.get_by_role("navigation", name="About old")).to_be_visible()
    run("rm", "old")
    expect(page.get_by_role("alert").get_by_text("no worker 'old' in task t1")).to_be_visible()
    expect(page.get_by_role("button", name="Try again")).to_have_count(0)


def test_workers_appear_change_and_end_without_a_reload(task: Task, visit: Visit, tmp_path: Path) -> None:
    page = visit.open()
    page.evaluate("window.isTheSame = true")
    expect(page.get_by_role("main").get_by_text("No worker has been started yet.")).to_be_visible()
    expect(page).to_have_title("agentctl")
    gate = tmp_path / "gate"
    spawn(worker("exits", 0, "--after-file", gate), name="works")
    expect(group(page, "Working").get_by_role("listitem")).to_have_count(1)
    expect(row(page, "works")).to_contain_text("running")
    spawn(ASKS, name="asks")
    expect(page).to_have_title("(1) agentctl")
    expect(question(page, "asks")).to_contain_text("Delete the old logs?")
    spawn(worker("exits", 3), "--wait", name="fails", check=False)
    spawn(worker("exits", 0), "--queue", "--after", "works", name="waits")
    expect(group(page, "Queued")).to_contain_text("waits")
    expect(row(page, "fails")).to_be_visible()
    assert [words.strip("▸▾ ") for words in groups_in_order(page)][:3] == ["Needs you 1", "Failed 1", "Working 1"]
    assert keys_in_order(page) == [f"t1/{name}" for name in ("asks", "fails", "works", "waits")]
    gate.touch()
    expect(group(page, "Done")).to_contain_text("2")
    expect(row(page, "works")).to_have_count(0)
    run("interact", "respond", "asks", "--id", "q1", "no")
    expect(page).to_have_title("agentctl")
    expect(group(page, "Needs you")).to_have_count(0)
    assert page.evaluate("window.isTheSame") is True


def test_the_oldest_question_is_on_top(task: Task, visit: Visit) -> None:
    for name in ("b", "a", "c"):
        spawn(ASKS, name=name)
        blocked(name)
    page = visit.open()
    expect(page).to_have_title("(3) agentctl")
    expect(group(page, "Needs you").get_by_role("article")).to_have_count(3)
    assert keys_in_order(page) == ["t1/b", "t1/a", "t1/c"]


def test_an_agent_that_has_answered_is_to_be_reviewed_until_it_was_opened(task: Task, visit: Visit) -> None:
    agent("say All is well.", name="a")
    ends()
    page = visit.open()
    expect(group(page, "Ready for review")).to_contain_text("All is well.")
    row(page, "a").get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("a")
    expect(page.get_by_role("log")).to_contain_text("All is well.")
    page.go_back()
    expect(row(page, "a").get_by_role("link")).to_be_focused()
    leave_lines(page)
    expect(group(page, "Ready for review")).to_have_count(0)
    expect(group(page, "Done")).to_be_visible()


def test_a_worker_in_the_timeline_opens_without_a_load(task: Task, visit: Visit) -> None:
    spawn(worker("exits", 0), "--wait", name="works")
    page = visit.open("/tasks/t1/timeline")
    page.evaluate("window.isTheSame = true")
    page.get_by_role("group", name=re.compile("^Timeline")).get_by_role("link", name="works").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("works")
    assert page.evaluate("window.isTheSame") is True


# -- answers -----------------------------------------------------------------------------------------------------------


@needs_tmux
def test_an_answer_in_the_page_is_seen_in_a_terminal(task: Task, visit: Visit) -> None:
    spawn(ASKS, name="asks")
    blocked("asks")
    page = visit.open()
    with tmux_window(100, 20) as window:
        window.write(f"while :; do {sys.executable} -m agentctl interact list > list; clear; cat list; sleep 0.2; done")
        window.press("Enter")
        window.shows("Delete the old logs?")
        pressed(page, "asks", "Yes")
        window.shows_no("Delete the old logs?")
    expect(row(page, "asks")).to_contain_text("asks nothing any more")  # It keeps its place under the pointer.
    leave_lines(page)
    expect(group(page, "Needs you")).to_have_count(0)
    run("wait", "asks")
    assert "answer: yes" in run("logs", "asks").out


def test_an_answer_elsewhere_is_told(task: Task, visit: Visit) -> None:
    spawn(ASKS, name="asks")
    blocked("asks")
    page = visit.open()
    expect(question(page, "asks")).to_be_visible()
    run("interact", "respond", "asks", "--id", "q1", "no")
    says(page, re.compile("question of asks was answered elsewhere, by user: no"))
    expect(question(page, "asks")).to_have_count(0)


def test_of_two_browsers_one_is_told_that_the_other_was_first(task: Task, visiting: Callable[..., Visit]) -> None:
    spawn(ASKS, name="asks")
    blocked("asks")
    first, second = visiting(), visiting()
    pages = [first.open(), second.open()]
    held: list[Any] = []
    pages[1].route("**/interact/*", lambda route: held.append(route))  # noqa: PLW0108 - the library marks what it is given
    no = question(pages[1], "asks").get_by_role("button", name="No")

    def tried() -> list[Any]:
        if not held:
            no.click()
            settled(pages[1])
        return held

    wait_until(tried, what="the request of the second")
    pressed(pages[0], "asks", "Yes")
    held[0].continue_()
    says(pages[1], re.compile("^Not answered: .*answered"))
    run("wait", "asks")
    assert "answer: yes" in run("logs", "asks").out


def test_a_worker_that_asks_and_is_not_in_the_list_yet_has_a_page(task: Task, visit: Visit) -> None:
    """As behind the link to a worker that has just been started: what `show` says of its question is no card."""
    spawn(ASKS, name="asks")
    page = visit.read_modules().open("/tasks/t1/workers/asks/questions")
    expect(question(page, "asks").or_(page.get_by_role("button", name="no", exact=True)).first).to_be_visible()
    page.evaluate("""async () => {
        const { takeFleet } = await pageModule('js/store.js');
        takeFleet({ whole: true, workers: {}, tasks: {} });
    }""")
    expect(page.get_by_role("heading", level=1)).to_contain_text("asks")
    expect(page.get_by_text("Delete the old logs?")).to_be_visible()
    expect(page.get_by_role("button", name="no", exact=True)).to_have_count(0)


def test_a_written_answer(task: Task, visit: Visit) -> None:
    spawn(worker("asks", "--kind", "input", "Which branch?"), name="asks")
    blocked("asks")
    page = visit.open()
    card = question(page, "asks")
    field = card.get_by_role("textbox", name="Answer")
    refusal = card.get_by_role("alert").filter(has_text="there is no answer in it yet")
    insist(page, card.get_by_role("button", name="Answer").click, refusal)
    field.fill("release/2")
    page.reload()
    visit.live()
    expect(field).to_have_value("release/2")
    field.press("Enter")
    says(page, "Answered asks: release/2")
    run("wait", "asks")
    assert "answer: release/2" in run("logs", "asks").out


def test_several_answers(task: Task, visit: Visit, tmp_path: Path) -> None:
    agent(plays(tmp_path, """
options = [{"label": label, "description": ""} for label in ("red", "green", "blue")]
one = {"question": "Which?", "header": "W", "options": options, "multiSelect": True}
me.ask("AskUserQuestion", {"questions": [one]}, "question")
"""))  # fmt: skip
    blocked()
    page = visit.open()
    for colour in ("red", "blue"):
        question(page, "a").get_by_role("checkbox", name=colour).check()
    button = question(page, "a").get_by_role("button", name="Answer with 2 chosen")
    until_said(page, button.click, "Answered a: red, blue")
    assert ends()["result"]["finalMessage"] == "red, blue"


# -- permissions -------------------------------------------------------------------------------------------------------


def asks_for_a_long_call(folder: Path) -> None:
    script = "\\n".join(f"step {number}" for number in range(400))
    agent(plays(folder, f"""
me.ask('Bash', {{'command': '{script}\\nrm -rf build'}},
       lambda answer: me.answer(answer['behavior'] + ' ' + answer.get('message', '')))
"""))  # fmt: skip
    blocked()


def test_a_call_is_allowed_only_once_all_of_it_was_visible(task: Task, visit: Visit, tmp_path: Path) -> None:
    asks_for_a_long_call(tmp_path)
    page = visit.open()
    card = question(page, "a")
    allow = card.get_by_role("button", name=re.compile(r"^(1 )?allow", re.IGNORECASE)).first
    call = card.get_by_role("group", name="Arguments of Bash")
    expect(call).to_be_visible()
    deny = card.get_by_role("button", name="Deny with a reason")
    expect(deny).to_be_enabled()
    expect(allow).to_be_disabled()
    row(page, "a").focus()
    typed(page, "1", re.compile("Not all of the call has been on the screen yet"))
    call.evaluate("(box) => { box.scrollTop = box.scrollHeight / 2; }")
    settled(page)
    expect(allow).to_be_disabled()
    call.hover()
    page.mouse.wheel(0, 20_000)
    expect(allow).to_be_enabled()
    until_said(page, allow.click, re.compile("Answered a"))
    assert ends()["result"]["finalMessage"].startswith("allow")


def test_a_call_below_the_fold_of_the_window_cannot_be_allowed(
    task: Task, visiting: Callable[..., Visit], tmp_path: Path
) -> None:
    asks_for_a_long_call(tmp_path)
    page = visiting(viewport={"width": 900, "height": 220}).open("/tasks/t1/workers/a/why")
    allow = page.get_by_role("button", name=re.compile(r"^(1 )?allow", re.IGNORECASE)).first
    expect(allow).to_be_disabled()
    page.keyboard.press("1")
    expect(allow).to_be_disabled()
    assert not task.events("interaction.responded")
    run("interact", "respond", "a", "--id", "q1", "deny")


def test_a_denial_with_a_reason(task: Task, visit: Visit, tmp_path: Path) -> None:
    asks_for_a_long_call(tmp_path)
    page = visit.open()
    card = question(page, "a")
    field = card.get_by_role("textbox", name="Why it is denied")
    insist(page, card.get_by_role("button", name="Deny with a reason").click, field)
    expect(field).to_be_focused()
    field.fill("use git clean")
    until_said(page, lambda: field.press("Enter"), "Answered a: denied: use git clean")
    assert "use git clean" in ends()["result"]["finalMessage"]


def test_the_queue_of_a_task_is_held_and_let_go_by_a_button(task: Task, visit: Visit) -> None:
    page = visit.open("/tasks/t1")
    page.get_by_role("button", name="Hold the queue").click()
    expect(page.get_by_role("main")).to_contain_text("held by user")
    spawn(worker("exits", 0), "--queue", name="waits")
    expect(row(page, "waits")).to_contain_text("held in the queue")
    assert task.order("agent.started") == []
    page.get_by_role("button", name="Let the queue go").click()
    expect(page.get_by_role("button", name="Hold the queue")).to_be_visible()
    task.ended("waits")
    expect(page.get_by_role("main")).not_to_contain_text("held by user")
