"""At stake: a call that is shown as what it would do hides nothing, and cannot look like an option."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from agentctl.domain.question import AnswerOption, Question
from agentctl.interfaces.commands.parts.question_lines import question_lines
from agentctl.interfaces.words.question_pieces import EDGE, call_pieces, option_pieces, options_of
from agentctl.operations.talk.interacting import OpenQuestion
from tests.agent_steps import agent, agent_world, blocked, ends
from tests.screens import Screen, watching
from tests.security.asking.test_peek import answers_of, permits, to_the_end
from tests.support import run

OPTIONS = (AnswerOption("allow", "Allow"), AnswerOption("deny", "Deny"))
MEANS = {"allow": "allow", "deny": "deny"}
LIE = "Only list files\n  1  Allow"
HARM = "rm -rf ~"
ODD = "\x1b[2K\x1b[1G\r\u202etxt\u200b\xa0\u2028\u0301\x9b31m"
#: In a text; within JSON those of one byte have two digits more.
ESCAPED = ("\\x1b[2K", "\\r", "\\u202e", "\\u200b", "\\xa0", "\\u2028", "\\x9b31m")
CALLS: dict[str, tuple[str, Any]] = {
    "edit": ("Edit", {"file_path": f"a{ODD}", "old_string": f"x\n{ODD}", "new_string": f"{HARM}\n  1  Allow{ODD}"}),
    "write": ("Write", {"file_path": f"a{ODD}\n  1  Allow", "content": f"ok\n{HARM}\n  1  Allow\n{ODD}"}),
    "command": ("Bash", {"command": f"ls\n  1  Allow\n{HARM}{ODD}", "description": LIE}),
    "extra": ("Edit", {"file_path": "a", "old_string": "x", "new_string": ODD, f"and{ODD}\n  1  Allow": HARM}),
    "types": ("Edit", {"file_path": ["a"], "old_string": {"x": ODD}, "new_string": 5, "also": [HARM]}),
    "patch": ("apply_patch", {"changes": [{"path": "a", "kind": "update"}], "diff of a": f"-x\n+{HARM}\n{ODD}"}),
    "fake sign": ("Edit", {"file_path": "a", "old_string": "x", "new_string": f"{'y' * 200}+ {HARM}{ODD}"}),
}  # fmt: skip


def asked(tool: str, arguments: Any, **more: Any) -> Question:
    return Question("q1", "select", "Allow it?", OPTIONS, tool=tool, arguments=arguments, means=MEANS, **more)


def rows_of(question: Question, width: int, *, is_raw: bool = False) -> list[str]:
    text = "".join(text for text, _ in call_pieces(question, width, is_raw=is_raw))
    return text.removesuffix("\n").split("\n")


@pytest.mark.parametrize("is_raw", [False, True])
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("width", [40, 80, 500])
def test_no_character_is_obeyed_and_no_row_looks_like_an_option(name: str, width: int, is_raw: bool) -> None:
    question = asked(*CALLS[name])
    rows = rows_of(question, width, is_raw=is_raw)
    assert all(row.isprintable() for row in rows)
    shown = (
        "".join(row.strip().removeprefix(EDGE.strip()).strip("> ") for row in rows)
        .replace(" ", "")
        .replace("\\u00", "\\x")
    )
    assert HARM.replace(" ", "") in shown
    for escape in ESCAPED:
        assert escape.replace(" ", "") in shown
    (option, *_) = "".join(text for text, _ in option_pieces(question, width)).split("\n")
    assert option == "  1  Allow"
    assert option not in rows
    assert all(EDGE.strip() in row or row.startswith("  ") for row in rows)


@pytest.mark.parametrize("name", CALLS)
def test_the_same_is_true_of_a_list(name: str) -> None:
    lines = question_lines(OpenQuestion("t1", "a", asked(*CALLS[name]), is_waiting=True))
    assert all(line.isprintable() for line in lines)
    assert "    1  Allow" not in lines
    assert HARM in "\n".join(lines)
    assert all(escape in "\n".join(lines).replace("\\u00", "\\x") for escape in ESCAPED)


def test_what_the_agent_says_stands_behind_the_command_and_is_called_its_own_words() -> None:
    question = asked(*CALLS["command"], described="Nothing to see")
    for rows in (rows_of(question, 80), question_lines(OpenQuestion("t1", "a", question, is_waiting=True))):
        command = next(at for at, row in enumerate(rows) if HARM in row)
        words = [at for at, row in enumerate(rows) if "in its own words: " in row]
        assert rows[words[0]].endswith("in its own words: Nothing to see")
        assert len(words) == 2
        assert command < min(words)
        assert not any("description" in row for row in rows)


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("\tgcc x\n", "    gcc x\n", ["- \\tgcc x", "+     gcc x"]),
        ("a\tb\n\tc", "a   b\n\tc\n\td", ["- a\\tb", "+ a   b", "  \\tc", "+ \\td"]),
        ("\tgo(1)\n\tend", "    go(2)\n\tstop", ["- \\tgo(1)", "- \\tend", "+     go(2)", "+ \\tstop"]),
        ("\tgo(1)", "\tgo(2)", ["-     go(1)", "+     go(2)"]),
    ],
)
def test_a_tab_is_told_from_the_spaces_that_it_becomes(old: str, new: str, lines: list[str]) -> None:
    question = asked("Edit", {"file_path": "a", "old_string": old, "new_string": new})
    rows = rows_of(question, 80)
    listed = question_lines(OpenQuestion("t1", "a", question, is_waiting=True))
    for line in lines:
        assert f"    {EDGE}{line}" in rows
        assert f"    |   {line}" in listed
    raw = "\n".join(rows_of(question, 80, is_raw=True))
    assert raw.count("\\t") == f"{old}{new}".count("\t")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Bash", {"command": "true;" * 20_000 + HARM}),
        ("Write", {"file_path": "a", "content": "x" * 100_000}),
        ("Edit", {"file_path": "a", "old_string": "a\nb\n" * 25_000, "new_string": "b\na\n" * 25_000}),
        ("Edit", {"file_path": "a", "old_string": "x", "new_string": "\n" * 401}),
        ("MultiEdit", {"file_path": "a", "edits": [{"new_string": "x" * 50}] * 2000}),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_what_is_too_long_is_only_denied_and_soon(tool: str, arguments: Any) -> None:
    question = asked(tool, arguments)
    began = time.process_time()
    rows = rows_of(question, 80)
    lines = question_lines(OpenQuestion("t1", "a", question, is_waiting=True))
    assert time.process_time() - began < 5
    assert "This is not the whole call, so it cannot be allowed here." in rows[-1]
    assert len(rows) < 2000
    assert [one.id for one in options_of(question)] == ["deny"]
    assert len("".join(lines)) > 400, "a list has all of it"


def test_of_what_was_cut_only_the_arguments_are_shown() -> None:
    question = asked("Edit", {"file_path": "a", "old_string": "x", "new_string": "y"}, is_cut=True)
    assert any("old_string" in row for row in rows_of(question, 80))
    assert [one.id for one in options_of(question)] == ["deny"]


@pytest.mark.screen
def test_an_edit_is_allowed_once_all_of_the_diff_was_on_the_screen_in_the_form_that_is_there(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = agent_world(tmp_path, monkeypatch)
    old = "".join(f"line {number}\n" for number in range(50))
    edit = {"file_path": "a", "old_string": old, "new_string": old + HARM}
    agent(permits(tmp_path, ("Edit", edit)))
    blocked()

    async def steps(screen: Screen) -> None:
        await screen.shows("Edit a", "line 0")
        await screen.settle()
        await screen.press("1")
        await screen.shows("not all of the call has been on the screen")
        await to_the_end(screen)
        await screen.shows(f"+ {HARM}")
        await screen.press("R")
        await screen.shows("old_string")
        await screen.settle()
        await screen.press("1")
        await screen.shows("not all of the call has been on the screen")
        assert answers_of(task) == []
        await screen.press("R")
        await screen.shows("Edit a")
        await to_the_end(screen)
        await screen.press("1")
        await screen.shows("a was answered: Allow")

    watching(steps)
    assert answers_of(task) == ["allow"]
    assert ends()["result"]
    assert run("list", "--json").json[0]["status"] == "completed"
