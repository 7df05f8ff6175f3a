"""At stake: a worker gets only answers that its question allows, always in the form that it asked for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.domain import answers
from agentctl.domain.question import AnswerOption, Question, question_in
from agentctl.errors import UsageError

IDS = st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=5, unique=True)


def asked(body: dict[str, Any]) -> Question:
    options = tuple(AnswerOption(**option) for option in body["options"])
    return Question("q1", body["kind"], body["question"], options, body.get("default"))


def check_answer(body: dict[str, Any], answer: str) -> str:
    question = question_in("q1", body)
    assert question is not None
    return answers.check_answer(question, answer)


def question(kind: str, *options: tuple[str, str], text: str = "Which?") -> dict[str, Any]:
    return {"kind": kind, "question": text, "options": [{"id": key, "label": label} for key, label in options]}


@given(IDS, st.data())
def test_an_option_is_answered_by_its_id_or_by_its_label(ids: list[str], data: st.DataObject) -> None:
    body = question("select", *((key, f"label of {key}") for key in ids))
    answers.check_question(asked(body))
    chosen = data.draw(st.sampled_from(ids))
    assert check_answer(body, chosen) == chosen
    assert check_answer(body, f"label of {chosen}") == chosen


@given(IDS, st.text(max_size=8))
def test_no_other_answer_to_a_select_is_taken(ids: list[str], answer: str) -> None:
    body = question("select", *((key, key) for key in ids))
    if answer in ids:
        assert check_answer(body, answer) == answer
    else:
        with pytest.raises(UsageError, match="is not an option"):
            check_answer(body, answer)


def test_an_id_wins_over_a_label_and_a_label_that_two_options_have_names_neither() -> None:
    assert check_answer(question("select", ("a", "b"), ("b", "c")), "b") == "b"
    with pytest.raises(UsageError, match="is not an option") as caught:
        check_answer(question("select", ("a", "same"), ("b", "same")), "same")
    assert "a (same), b (same)" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("told", "answer"), [("y", "yes"), (" YES\n", "yes"), ("1", "yes"), ("No", "no"), ("false", "no")]
)
def test_a_confirm_is_answered_with_yes_or_no_however_it_is_said(told: str, answer: str) -> None:
    assert check_answer(question("confirm"), told) == answer


@pytest.mark.parametrize("told", ["", "maybe", "yesno", "0.0", "ja"])
def test_a_confirm_takes_nothing_else(told: str) -> None:
    with pytest.raises(UsageError, match="neither yes nor no"):
        check_answer(question("confirm"), told)


@given(st.text())
def test_an_input_takes_any_text_as_it_is(answer: str) -> None:
    assert check_answer(question("input"), answer) == answer


def test_an_input_takes_no_text_without_end() -> None:
    with pytest.raises(UsageError, match="too long"):
        check_answer(question("input"), "x" * 100_001)


@pytest.mark.parametrize(
    ("body", "default", "problem"),
    [
        (question("choose"), None, "--kind must be one of"),
        (question("input", text="  \n"), None, "the question is empty"),
        (question("select"), None, "needs options"),
        (question("confirm", ("a", "A")), None, "takes no options"),
        (question("select", ("a", "A"), ("a", "B")), None, "must differ"),
        (question("select", ("", "A")), None, "must differ and not be empty"),
        (question("select", ("a", "A")), "b", "is not an option"),
        (question("confirm"), "perhaps", "neither yes nor no"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_question_that_cannot_be_answered_is_not_asked(
    body: dict[str, Any], default: str | None, problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        answers.check_question(asked({**body, "default": default}))


def test_the_words_of_an_answer_are_the_same_for_every_program() -> None:
    options = [{"id": name, "label": name} for name in ("accept", "decline", "cancel", "always")]
    means = {"accept": "allow", "decline": "deny", "cancel": "deny", "always": "allow_always"}
    body = {"kind": "select", "question": "May I?", "tool": "exec", "options": options, "means": means}
    words = {"allow": "accept", "yes": "accept", "deny": "decline", "NO": "decline", "allow_always": "always"}
    assert {word: check_answer(body, word) for word in words} == words
    assert check_answer(body, "cancel") == "cancel"
    with pytest.raises(UsageError) as refused:
        check_answer(body, "perhaps")
    assert str(refused.value.hint).startswith("allow, deny, allow_always; the options: accept")
    for untold in ({**body, "means": None}, {**body, "tool": None, "means": None}):
        with pytest.raises(UsageError):
            check_answer(untold, "allow")
