"""At stake: whatever an agent asks can be answered on the screen, in each way in which it can be answered elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent_steps import agent, agent_world, blocked, ends, plays
from tests.screens import Screen, watching
from tests.steps import Task, spawn
from tests.support import run, worker


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    return agent_world(tmp_path, monkeypatch)


def test_a_call_is_denied_with_a_reason_which_the_agent_gets(task: Task, tmp_path: Path) -> None:
    agent(plays(tmp_path, "me.ask('Bash', {'command': 'rm -rf x'}, lambda answer: me.answer(answer['message']))"))
    blocked()

    async def steps(screen: Screen) -> None:
        await screen.go_to("a")
        await screen.shows("D denies with a reason")
        await screen.press("D")
        await screen.shows("deny a, because")
        await screen.write("use git clean")
        await screen.press("enter")
        await screen.shows_no("asks for permission")

    watching(steps)
    end = ends()
    assert end["status"] == "completed"
    assert "use git clean" in end["result"]["finalMessage"]


@pytest.mark.slow
def test_a_denial_that_is_left_denies_nothing(task: Task, tmp_path: Path) -> None:
    agent(plays(tmp_path, "me.ask('Bash', {'command': 'ls'}, lambda answer: me.answer(answer['behavior']))"))
    blocked()

    async def steps(screen: Screen) -> None:
        await screen.go_to("a")
        await screen.press("D")
        await screen.shows("deny a, because")
        await screen.write("no")
        await screen.press("escape")
        await screen.shows_no("deny a, because")
        await screen.shows("asks for permission")

    watching(steps)
    run("interact", "respond", "a", "--id", "q1", "allow")
    assert ends()["result"]["finalMessage"] == "allow"


def test_digits_choose_several_and_enter_answers_with_them(task: Task, tmp_path: Path) -> None:
    agent(plays(tmp_path, """
options = [{"label": label, "description": ""} for label in ("red", "green", "blue")]
one = {"question": "Which?", "header": "W", "options": options, "multiSelect": True}
me.ask("AskUserQuestion", {"questions": [one]}, "question")
"""))  # fmt: skip
    blocked()

    async def steps(screen: Screen) -> None:
        await screen.go_to("a")
        await screen.shows("1-3 chooses, Enter answers", "1  [ ] red", "3  [ ] blue")
        await screen.settle()
        await screen.press("1", "2", "3")
        await screen.shows("1  [x] red", "2  [x] green", "3  [x] blue")
        await screen.press("2")
        await screen.shows("1  [x] red", "2  [ ] green", "3  [x] blue")
        await screen.press("enter")
        await screen.shows("a was answered: red, blue")

    watching(steps)
    assert ends()["result"]["finalMessage"] == "red, blue"


def test_a_digit_counts_once_all_of_a_question_was_seen_and_a_written_answer_always(task: Task) -> None:
    lines = "\n".join(f"line {number:02}" for number in range(60))
    options = [word for number in range(10) for word in ("--option", f"o{number}=Option {number}")]
    for name in "ab":
        spawn(worker("asks", *options, f"{lines}\nall of it?"), name=name)
        task.has("agent.blocked", name)

    async def steps(screen: Screen) -> None:
        await screen.go_to("a")
        await screen.shows("line 00", "Ctrl+D shows the rest")
        await screen.settle()
        await screen.press("1")
        await screen.shows("not all of the question has been on the screen")
        while "all of it?" not in screen.text():
            await screen.press("ctrl+d")
        while screen.app.peek.scroll_y < screen.app.peek.max_scroll_y:
            await screen.press("ctrl+d")
        await screen.press("1")
        await screen.shows("a was answered: Option 0", "b of t1 asks")
        await screen.press("i")
        await screen.write("o3")
        await screen.press("enter")
        await screen.shows("b was answered: Option 3")

    watching(steps)
    task.ended("a", "b")


def test_a_question_takes_the_rows_that_a_short_list_leaves_empty(task: Task) -> None:
    lines = "\n".join(f"line {number:02}" for number in range(10))
    spawn(worker("asks", "--option", "x=One", f"{lines}\nall of it?"), name="a")
    task.has("agent.blocked", "a")

    async def steps(screen: Screen) -> None:
        await screen.go_to("a")
        await screen.shows("line 00", "all of it?", "1  One", "Quit")
        await screen.pilot.resize_terminal(80, 16)
        await screen.shows("Ctrl+D shows the rest", "needs you 1")
        await screen.pilot.resize_terminal(80, 24)
        await screen.shows("line 00", "all of it?")
        await screen.settle()
        await screen.press("1")
        await screen.shows("a was answered: One")

    watching(steps, size=(80, 24))
    task.ended("a")


@pytest.mark.slow
def test_a_long_question_is_scrolled_and_scrolled_back(task: Task) -> None:
    lines = "\n".join(["Which of these is it that you want to be done next?", *(f"line {n:02}" for n in range(60))])
    spawn(worker("asks", "--option", "x=One", lines), name="a")
    task.has("agent.blocked", "a")

    async def steps(screen: Screen) -> None:
        await screen.go_to("a")
        await screen.shows("line 00", "Ctrl+D shows the rest")
        await screen.settle()
        await screen.press("ctrl+d")
        await screen.shows_no("line 00")
        await screen.press("ctrl+u")
        await screen.shows("line 00")

    watching(steps)
    run("cancel", "a")
