"""At stake: what agents ask is read as it is meant at a terminal, which obeys nothing of it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.domain.question import AnswerOption, Question
from agentctl.domain.text.terminal_rows import most_cells
from agentctl.interfaces.commands.parts.question_lines import question_lines, written_rows
from agentctl.operations.talk.interacting import OpenQuestion

YES_NO = (AnswerOption("yes", "Yes"), AnswerOption("no", "No"))
SGR = re.compile(r"\x1b\[[\d;]+m")
PIECES = ["# ", "- ", "**", "`", "\n", "| a | b |\n|---|---|\n", "> ", "\x1b[31m", "\x1b]8;;http://e.org\x07",
          "\x1b[2K", "\r", "\u202e", "\U0001f600", "中", "word ", "x" * 30, "\t"]  # fmt: skip


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)


def lines(text: str, *, is_source: bool = False) -> list[str]:
    question = Question(id="q1", kind="select", text=text, options=YES_NO, asked_at="")
    return question_lines(OpenQuestion("t1", "a", question, is_waiting=True), is_source=is_source)


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join), st.sampled_from([20, 79]))
def test_only_our_own_styles_are_sent_and_each_row_fits(text: str, width: int) -> None:
    for row in written_rows(text, width):
        bare = SGR.sub("", row)
        assert bare.isprintable() or not bare
        assert most_cells(bare) <= width


def test_a_question_of_one_line_stands_behind_its_name_and_a_longer_one_behind_an_edge() -> None:
    assert lines("Go *on*?")[0] == "a in t1 asks: Go \x1b[3mon\x1b[0m?"
    asked = lines("Go on?\n\n    yes  Delete nothing")
    assert asked[:4] == ["a in t1 asks:", "    | Go on?", "    | ", "    |     \x1b[36myes  Delete nothing\x1b[0m"]
    assert [line for line in asked if line.startswith("    yes")] == ["    yes  Yes"]


def test_its_source_is_one_option_away_and_plain_terminals_get_no_styles(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lines("# Go\n*on*", is_source=True)[1:3] == ["    | # Go", "    | *on*"]
    monkeypatch.setenv("NO_COLOR", "1")
    assert written_rows("**a** `b`", 80) == ["\x1b[1ma\x1b[0m b"]
    monkeypatch.setenv("TERM", "dumb")
    assert written_rows("**a** `b`", 80) == ["a b"]


def test_a_terminal_that_cannot_print_the_drawing_gets_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTCTL_TYPED_IN", "ISO-8859-1")
    assert written_rows("- a\n- **b**", 80) == ["- a", "- **b**"]
