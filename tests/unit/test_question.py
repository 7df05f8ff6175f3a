"""At stake: nobody allows a call where they do not see the whole of it, whatever shows it to them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from agentctl.adapters.taskdir import Root
from agentctl.domain.answers import answer_meant, answers_in_words, check_answer
from agentctl.domain.names import WorkerId
from agentctl.domain.notice.answer_links import buttons_for
from agentctl.domain.question import (
    DENY,
    AnswerOption,
    Question,
    ShownQuestion,
    in_one_line,
    offered,
    question_in,
    question_within,
    safe,
)
from agentctl.errors import UsageError
from agentctl.interfaces.commands.parts.question_lines import question_lines
from agentctl.interfaces.commands.watch import fleet_table
from agentctl.interfaces.editor import dialogs
from agentctl.interfaces.editor.session.session_view import EditorQuestion
from agentctl.interfaces.mcp.forms import form_of
from agentctl.interfaces.web.board import page_question
from agentctl.interfaces.words.question_pieces import EDGE, call_pieces, option_pieces, options_of
from agentctl.operations.talk.interacting import OpenQuestion

WORKER = Root("/nowhere/.agentctl").task("t1").worker("a")
MEANS = {"once": "allow", "always": "allow_always", "no": "deny"}
LABELS = st.sampled_from(["Yes", "Always", "No", "", "x" * 1001, "\u200b" * 400])
SIZES = st.sampled_from([0, 10, 150, 190, 1900, 1990, 3000, 3990, 5000, 23_000, 30_000])
ARGUMENTS = st.builds(
    lambda size, filling, more: {"command": filling * size, **more},
    SIZES,
    st.sampled_from(["x", " ", "\n", "\u200b", '"']),
    st.sampled_from([{}, {"description": "list files"}, {"description": "d" * 90}, {"cwd": "/"}, {"changes": []}]),
)
PERMISSIONS = st.builds(
    lambda text, labels, arguments, more: question_in(
        "q1",
        {
            "kind": "select", "question": text, "tool": "Bash", "arguments": arguments, "means": MEANS,
            "options": [{"id": id_, "label": label} for id_, label in zip(MEANS, labels, strict=True)], **more,
        },
    ),
    st.sampled_from(["Allow Bash?", "?" * 2100, "?" * 5000, "a\nb"]),
    st.tuples(LABELS, LABELS, LABELS),
    ARGUMENTS | st.just({}) | st.just("cut"),
    st.sampled_from([{}, {"isCut": True}, {"described": "list files"}, {"means": None}, {"tool": None},
                     {"kind": "confirm", "options": []}, {"kind": "input", "options": []}, {"other": True},
                     {"multiple": True}]),
)  # fmt: skip


def typed(question: Question, words: str) -> set[str]:
    """Return what the answers that a line names choose."""
    named = [word.strip("'") for word in words.split(", ") if word]
    assert "any text" not in named or not question.is_permission
    return {check_answer(question, word) for word in named if word != "..."}


def in_editor(question: Question) -> tuple[str, set[str]]:
    asked = EditorQuestion(WORKER, question, is_own=True)
    choice = dialogs.choice_of(asked, "call")
    words = dialogs.way_to_answer(asked).partition("(ANSWER: ")[2].removesuffix(")")
    by_words = typed(question, words) if question.kind == "select" else set()
    answers = by_words | {one["optionId"] for one in (choice.options if choice else [])}
    if choice is None:
        return dialogs.dialog_words(asked), answers
    text = "".join(one["content"]["text"] for one in choice.tool_call["content"])
    # A command stands there line by line.
    return text + "\\n".join(text.partition("```sh\n")[2].partition("\n```")[0].split("\n")), answers


def in_form(question: Question) -> tuple[str, set[str]]:
    form = form_of(WORKER, question)
    return form.message, {"any text"} if form.answers is None else set(form.answers.values())


def in_message(question: Question) -> tuple[str, set[str]]:
    return question.text, {one.answer for one in buttons_for(question)}


def in_line(question: Question) -> tuple[str, set[str]]:
    line = in_one_line(question)
    words = answers_in_words(question, line)
    return line.text, typed(question, words) if question.kind == "select" and not question.other else set()


def in_table(question: Question) -> tuple[str, set[str]]:
    *rows, command = fleet_table.question_rows(WorkerId("t1", "a"), question, 40, "")
    assert all(len(row) <= 40 or not row.isascii() for row in rows)
    words = command.partition("(ANSWER: ")[2].removesuffix(")")
    found = typed(question, words) if question.kind == "select" and not question.other else set()
    return "".join(row.removeprefix("      ") for row in rows), found


def in_list(question: Question) -> tuple[str, set[str]]:
    lines = question_lines(OpenQuestion("t1", "a", question, is_waiting=True))
    named = {one.id for one in question.choices if f"    {one.id}  {safe(question, one.label)}" in lines}
    return "\n".join(lines), named


def on_page(question: Question) -> tuple[str, set[str]]:
    told = page_question(question)
    return json.dumps(told["arguments"]) if "arguments" in told else "", {one["id"] for one in told["offered"]}


def on_screen(question: Question) -> tuple[str, set[str]]:
    drawn = "".join(text for text, _ in call_pieces(question, 10_000))
    options = "".join(text for text, _ in option_pieces(question, 100, set()))
    answers = {one.id for one in options_of(question)}
    assert answers or not options
    return drawn.replace("\n" + " " * 4 + EDGE, ""), answers


SURFACES = {
    one.__name__: one for one in (in_editor, in_form, in_message, in_line, in_table, in_list, on_screen, on_page)
}


@pytest.mark.parametrize("name", SURFACES)
@given(question=PERMISSIONS)
def test_no_surface_offers_to_allow_what_it_does_not_show_whole(name: str, question: Question | None) -> None:
    assume(question is not None)
    assert question is not None
    text, answers = SURFACES[name](question)
    allowing = {one for one in answers if question.meaning(one) != DENY}
    if question.is_cut:
        assert not allowing, "it is whole nowhere"
    assert answers - allowing <= {one.id for one in question.choices}
    if name == "in_message":
        assert not allowing, "a message never shows a call"
    if allowing and isinstance(question.arguments, dict) and "command" in question.arguments and name[:2] == "in":
        command = question.arguments["command"]
        seen = text.replace("    | command: ", "")
        rows = "\n    |     ".join(safe(question, row) for row in command.split("\n"))
        assert f"    |   $ {rows}\n" in text or any(
            one in seen for one in (safe(question, command), safe(question, json.dumps(command)[1:-1]))
        )
    if allowing and name != "on_page":
        assert "cut:" not in text
    if name == "on_page":
        assert page_question(question)["isWhole"] or not allowing
    if name == "on_screen":
        assert ("This is not the whole call" not in text) or not allowing


@given(PERMISSIONS, st.sampled_from([100, 2000, 4000, 24_000]))
def test_what_is_offered_where_more_is_shown_is_more(question: Question | None, most: int) -> None:
    assume(question is not None)
    assert question is not None
    few, all_ = offered(question, question_within(question, most)), offered(question, question_within(question, 1e9))
    assert set(few) <= set(all_)
    assert [one for one in question.choices if question.meaning(one.id) == DENY] == [
        one for one in few if question.meaning(one.id) == DENY
    ], "it can be denied anywhere"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
KEYS = ("id", "kind", "question", "options", "default", "askedAt", "deadlineSeconds", "tool", "arguments", "isCut",
        "means", "described", "askedBy", "askedByType", "multiple", "other", "idle", "asker")  # fmt: skip


@given(st.dictionaries(st.sampled_from(KEYS), VALUES), st.sampled_from(["select", "confirm", "input"]))
@example({"tool": "Bash", "options": [{"id": "a", "label": "A"}], "means": {"a": ["allow"]}}, "select")
def test_whatever_a_stranger_wrote_is_a_question_or_none(value: dict[str, Any], kind: str) -> None:
    for body in (value, {"question": "Which?", **value, "kind": kind}):
        question = question_in("q1", body)
        if question is None:
            continue
        again = question_in("q1", json.loads(json.dumps(question.to_json())))
        assert again is not None
        assert json.dumps(again.to_json()) == json.dumps(question.to_json())
        for make in SURFACES.values():
            make(question)
        for line in (in_one_line(question).text, answers_in_words(question, in_one_line(question))):
            assert line.isprintable() or "\xad" in line or not line.isascii()
            assert "\n" not in line
            line.encode()


def test_a_line_has_no_answer_that_is_not_taken() -> None:
    means = {"allow": "deny", "x": "allow", "y": "allow"}
    options = tuple(AnswerOption(one, one) for one in ("allow", "x", "y", "a b"))
    question = Question("q1", "select", "?", options, tool="Bash", arguments={"command": "ls"}, means=means)
    words = answers_in_words(question, question_within(question, 100))
    assert words == "deny, x, y, 'a b'", "`allow` would deny"
    with pytest.raises(UsageError):
        check_answer(question, "b")


def test_the_label_of_an_answer_must_be_seen() -> None:
    question = Question(
        "q1", "select", "?", (AnswerOption("always", "Allow from now on: rm"), AnswerOption("no", "No")),
        tool="Bash", arguments={"command": "ls"}, means=MEANS,
    )  # fmt: skip
    assert [one.id for one in offered(question, in_one_line(question))] == ["no"], "a line shows no label"
    assert [one.id for one in offered(question, ShownQuestion("?", "", is_whole=True))] == ["always", "no"]


def test_the_screen_offers_what_is_offered() -> None:
    cases: list[tuple[dict[str, Any], list[str]]] = [({}, ["once", "no"]), ({"is_cut": True}, ["no"])]
    for more, answers in cases:
        for size, whole in ((10, True), (30_000, False)):
            question = Question(
                "q1", "select", "?", (AnswerOption("once", "Yes"), AnswerOption("no", "No")), tool="Bash",
                arguments={"command": "x" * size}, means=MEANS, **more,
            )  # fmt: skip
            assert [one.id for one in options_of(question)] == (answers if whole else ["no"])
            drawn = "".join(text for text, _ in option_pieces(question, 100, set()))
            assert ("Yes" in drawn) == (whole and not more)
    lines = Question(
        "q1", "select", "?", (AnswerOption("once", "Yes"),), tool="Bash", arguments={"command": "\n" * 401}, means=MEANS
    )
    assert options_of(lines) == (), "more lines than are drawn"


NAMES = st.text("ab1 ,", min_size=1, max_size=4)


@given(st.lists(st.tuples(NAMES, NAMES), max_size=4), st.text("ab123 ,", max_size=6), st.booleans())
def test_what_is_typed_chooses_by_the_numbers_that_were_shown_or_is_the_answer(
    pairs: list[tuple[str, str]], typed: str, multiple: bool
) -> None:
    options = [AnswerOption(*pair) for pair in pairs]
    for number, option in enumerate(options, 1):
        assert answer_meant(options, f" {number} ", multiple=multiple) == option.id
    answer = answer_meant(options, typed, multiple=multiple)
    if not any(one.isdigit() for one in typed):
        assert [part.strip() for part in answer.split(",")] == [part.strip() for part in typed.split(",")]
    if not options and not multiple:
        assert answer == typed
