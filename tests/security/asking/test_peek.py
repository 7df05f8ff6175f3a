"""At stake: nobody allows by a key of the screen what was not on it, or not long enough to be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentctl.adapters.clock import monotonic
from agentctl.domain.question import SETTLES_S, AnswerOption
from agentctl.interfaces.words.question_pieces import call_rows
from tests.agent_steps import agent, agent_world, blocked, ends, plays
from tests.screens import Screen, watching
from tests.steps import Task, spawn
from tests.support import run, worker

pytestmark = pytest.mark.screen

#: More than any screen of these tests has.
LONG = 60


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    return agent_world(tmp_path, monkeypatch, cap=4)


def permits(
    folder: Path,
    *calls: tuple[str, dict[str, Any]],
    for_good: bool = False,
    said: str = "",
) -> str:
    """Return the prompt of an agent that asks whether it may do these calls, at once."""
    more: dict[str, Any] = {"permission_suggestions": [{"type": "addRules"}]} if for_good else {}
    more |= {"description": said} if said else {}
    kind = "'permission'" if len(calls) == 1 else "lambda _: None"
    lines = [
        f"me.waiting['r{number}'] = {kind}\n"
        f"say(type='control_request', request_id='r{number}', request={{'subtype': 'can_use_tool',"
        f" 'tool_name': {tool!r}, 'input': {arguments!r}, **{more!r}}})\n"
        for number, (tool, arguments) in enumerate(calls)
    ]
    return plays(folder, "".join(lines))


async def to_the_end(screen: Screen) -> None:
    shown = screen.app.peek
    await screen.settle()
    while shown.scroll_y < shown.max_scroll_y:
        await screen.press("ctrl+d")


def command(text: str) -> tuple[str, dict[str, Any]]:
    return "Bash", {"command": text}


def tall(name: str, lines: int = LONG) -> tuple[str, dict[str, Any]]:
    return command("\n".join(f"{name} {number}" for number in range(lines)))


def answers_of(task: Task, name: str = "a") -> list[str]:
    return [row["payload"]["answer"] for row in task.events("interaction.responded", of=name)]


def test_a_call_is_allowed_only_once_its_end_was_on_the_screen(task: Task, tmp_path: Path) -> None:
    agent(permits(tmp_path, tall("line")))
    blocked()

    async def steps(screen: Screen) -> None:
        await screen.shows("line 0")
        await screen.settle()
        await screen.press("1")
        await screen.shows("not all of the call has been on the screen")
        await to_the_end(screen)
        await screen.shows(f"line {LONG - 1}", "1  Allow")
        await screen.press("1")
        await screen.shows("a was answered: Allow")

    watching(steps)
    assert answers_of(task) == ["allow"]
    assert ends()["result"]


def test_the_place_of_one_call_does_not_count_for_the_next(task: Task, tmp_path: Path) -> None:
    """The first one is scrolled to its end; the second one is shorter, and also has an end that is not to be seen."""
    agent(permits(tmp_path, tall("one"), tall("two", LONG // 2)))
    blocked()

    async def steps(screen: Screen) -> None:
        await screen.shows("one 0")
        await to_the_end(screen)
        await screen.settle()
        await screen.press("1")
        await screen.shows("a was answered: Allow", "two 0")
        await screen.settle()
        await screen.press("1")
        await screen.shows("not all of the call has been on the screen", "two 0")

    watching(steps)
    assert answers_of(task) == ["allow"]
    run("cancel", "a")


@pytest.mark.slow
def test_what_came_up_behind_another_screen_is_new(task: Task, tmp_path: Path) -> None:
    agent(permits(tmp_path, command("first"), command("second")))
    blocked()

    async def steps(screen: Screen) -> None:
        await screen.shows("first")
        await screen.press("question_mark")
        run("interact", "respond", "a", "--id", "q1", "deny")
        await screen.until(
            lambda: screen.app.peek.question_key is not None and screen.app.peek.question_key[1] == "q2",
            "the second question below the help",
        )
        await screen.until(lambda: "second" in screen.app.peek.text, "its text")
        await screen.settle()
        left_at = monotonic()
        await screen.press("escape")
        await screen.shows("second")
        await screen.settle()
        assert not screen.app.peek.has_settled_at(left_at)

    watching(steps)
    assert answers_of(task) == ["deny"]
    run("cancel", "a")


def test_a_key_counts_when_it_was_pressed_and_not_when_it_is_carried_out(task: Task, tmp_path: Path) -> None:
    """A busy screen carries it out late: by then the question has been there for long."""
    agent(permits(tmp_path, command("first")))
    blocked()

    async def steps(screen: Screen) -> None:
        await screen.shows("first")
        await screen.settle()
        shown = screen.app.peek
        before = shown._since
        assert shown.has_settled
        assert not shown.has_settled_at(before + SETTLES_S / 2)
        screen.app._last_key = before + SETTLES_S / 2
        screen.app.action_answer(1)
        await screen.shows("press the digit again")

    watching(steps)
    assert answers_of(task) == []
    run("cancel", "a")


def test_a_text_that_was_begun_for_a_call_does_not_allow_it_once_it_is_not_shown(task: Task, tmp_path: Path) -> None:
    agent(permits(tmp_path, tall("line")))
    blocked()

    async def steps(screen: Screen) -> None:
        await screen.shows("line 0")
        await screen.press("i")
        await screen.write("allow")
        await screen.pilot.resize_terminal(100, 10)
        await screen.until(lambda: not screen.app.peek.display, "a screen without a peek")
        await screen.press("enter")
        await screen.shows("not what is on the screen")

    watching(steps)
    assert answers_of(task) == []
    run("cancel", "a")


@pytest.mark.parametrize(
    "call",
    [command("y" * 290 + "END"), ("x" * 300 + "END", {"a": 1}), ("Bash", {"k" * 300 + "END": 1})],
    ids=["label", "tool", "key"],
)
def test_nothing_of_what_a_digit_allows_is_cut(task: Task, tmp_path: Path, call: tuple[str, dict[str, Any]]) -> None:
    agent(permits(tmp_path, call, for_good=True))
    blocked()

    async def steps(screen: Screen) -> None:
        await screen.shows("asks for permission")
        await to_the_end(screen)
        whole = screen.app.peek.text.replace("\n", "").replace("│ ", "")
        shown = "".join(whole.split())
        if "END" in shown:
            return
        await screen.press("1")
        await screen.shows("not the whole call")

    watching(steps)
    assert answers_of(task) == []
    run("cancel", "a")


def test_what_an_answer_for_good_allows_is_shown_whole_or_not_offered(task: Task, tmp_path: Path) -> None:
    agent(permits(tmp_path, command("y" * 400 + " rm -rf /"), for_good=True))
    blocked()

    async def steps(screen: Screen) -> None:
        await screen.shows("1  Allow")
        await to_the_end(screen)
        await screen.shows("2  Deny")
        assert "from now on" not in screen.app.peek.text
        await screen.press("i")
        await screen.write("allow_always")
        await screen.press("enter")
        await screen.shows("'allow_always' is not an option of this question")

    watching(steps)
    assert answers_of(task) == []
    run("cancel", "a")


def test_two_calls_that_differ_look_different(task: Task, tmp_path: Path) -> None:
    hidden = ["\u200b", "\u2060", "\ufeff", "\u00ad", "\u00a0", "\u3164", "\u2800", "\ufe0f", "\U000e0041", "\u202e"]
    agent(permits(tmp_path, command("".join(f"./build{one}.sh\n" for one in hidden))))
    blocked()

    async def steps(screen: Screen) -> None:
        await screen.shows("./build\\u200b.sh")
        text = screen.app.peek.text
        assert not set(hidden) & set(text)
        assert text.count("./build\\") == 2 * len(hidden), "in the request's name, and in its arguments"

    watching(steps)
    run("cancel", "a")


#: What rich takes for narrower than some terminal draws it, or for nothing at all.
WIDER = ["\U0001f3fb", "\u093e", "\u1160", "\u0301", "\U0001f1e6", "\u0430", "\U0001d159"]


@pytest.mark.parametrize("one", WIDER, ids=[f"{ord(one):04x}" for one in WIDER])
def test_no_row_of_a_call_goes_on_beyond_the_edge_of_any_terminal(one: str) -> None:
    """Terminals disagree with each other, and with rich, about how many cells a character takes: two at most."""
    width, hidden = 60, "; rm -rf /"
    rows = call_rows(f"echo {one * 100}{hidden}", "| ", width).split("\n")
    assert all(sum(1 if char.isascii() else 2 for char in row) <= width for row in rows)
    assert "".join(row.removeprefix("| ") for row in rows).replace(" ", "").endswith(hidden.replace(" ", ""))
    assert call_rows(one, "| ", width), "what has nothing else is shown all the same"


@pytest.mark.parametrize("one", ["\u1161", "\u0915\u093e"], ids=["vowel of Hangul", "letter with a mark"])
def test_what_rich_draws_in_no_cell_takes_one_of_a_row(one: str) -> None:
    rows = call_rows(one * 100, "| ", 60).split("\n")
    assert max(map(len, rows)) <= 60


def test_a_name_that_an_agent_has_chosen_looks_like_no_option(task: Task) -> None:
    spawn(worker("asks", "--option", "x=Keep", "--option", "y=Delete", "What?"), name="w")
    task.has("agent.blocked", "w")
    kind = "explore".ljust(75) + "1  Deny" + " " * 40 + "\u200b2  Allow"
    call: Any = {"tool": "Bash", "arguments": {"1  Deny": "ls"}, "asked_by": "T1", "asked_by_type": kind}

    async def steps(screen: Screen) -> None:
        await screen.shows("1  Keep")
        one = screen.app.acted_on()
        assert one is not None
        screen.app.peek.show(screen.app.last_glance(), one._replace(questions=(one.questions[0]._replace(**call),)))
        text = screen.app.peek.text
        assert '"1  Deny": ls' in text
        assert "explore" in text.splitlines()[0]
        assert "2  Allow" not in text

    watching(steps)
    run("cancel", "w")


@pytest.mark.slow
@pytest.mark.parametrize("width", [40, 80, 121])
def test_no_text_of_an_agent_looks_like_an_option(task: Task, tmp_path: Path, width: int) -> None:
    """Neither by its line breaks, nor by being wrapped, in a description, an argument or its name."""
    fake = "  1  Deny"
    padded = "".join("x".ljust(room) + fake.ljust(room) for room in range(width - 12, width + 1))
    text = f"x\n{fake}\n{padded}"
    agent(permits(tmp_path, ("Bash", {"a": text, f"k{text}": 1}), said=text))
    blocked()

    async def steps(screen: Screen) -> None:
        await screen.shows("asks for permission")
        seen = set(screen.rows())
        while screen.app.peek.scroll_y < screen.app.peek.max_scroll_y:
            await screen.press("ctrl+d")
            seen |= set(screen.rows())
        options = {row.strip(" ▁▂▃▄▅▆▇█") for row in seen if row.strip().startswith("1 ")}
        assert options == {"1  Allow"}

    watching(steps, size=(width, 40))
    run("cancel", "a")


def test_a_question_that_changes_under_its_name_is_new(task: Task) -> None:
    """A worker without a sandbox may rewrite its question, but not between a glance and a key."""
    spawn(worker("asks", "--option", "x=Keep", "--option", "y=Delete", "What?"), name="w")
    task.has("agent.blocked", "w")

    async def steps(screen: Screen) -> None:
        await screen.shows("1  Keep")
        await screen.settle()
        shown = screen.app.peek
        glance, one = screen.app.last_glance(), screen.app.acted_on()
        assert one is not None
        labels = (AnswerOption("x", "Delete"), AnswerOption("y", "Keep"))
        shown.show(glance, one._replace(questions=(one.questions[0]._replace(options=labels),)))
        assert not shown.has_settled

    watching(steps)
    run("cancel", "w")


def test_an_agent_with_a_screen_allows_nothing(task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a shell of Claude Code; it may deny."""
    agent(permits(tmp_path, command("first"), command("second")))
    blocked()
    monkeypatch.setenv("CLAUDECODE", "1")

    async def steps(screen: Screen) -> None:
        await screen.shows("first", "2  Deny")
        await screen.settle()
        await screen.press("1")
        await screen.shows("an agent may deny it")
        await screen.settle()
        await screen.press("2")
        await screen.shows("a was answered: Deny")

    watching(steps)
    assert answers_of(task) == ["deny"]
    run("cancel", "a")
