"""At stake: a link gives the one answer that it was signed for, and a message offers no answer that is not shown."""

from __future__ import annotations

import json
import string
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from agentctl.domain.answers import check_answer
from agentctl.domain.notice import answer_links
from agentctl.domain.notice.answer_links import (
    DENY_LABEL,
    LIFETIME_S,
    MOST_BUTTONS,
    AnswerLink,
    Button,
    read_link,
    sign,
)
from agentctl.domain.notice.notice_text import clean
from agentctl.domain.notice.targets import NoticeTarget, target_from
from agentctl.domain.question import Question, question_in
from agentctl.errors import Refused

TOKEN, NOW = "a-token-of-a-server", 1_800_000_000.0
BODY: dict[str, Any] = {
    "kind": "confirm",
    "question": "Deploy?",
    "askedAt": "2026-11-25T03:30:05.737Z",
    "asker": {"pid": 7},
}


def digest_of(body: dict[str, Any]) -> str:
    question = question_in("q1", body)
    assert question is not None
    return answer_links.question_digest(question)


def buttons_for(body: dict[str, Any]) -> tuple[Button, ...]:
    question = question_in("q1", body)
    return () if question is None else answer_links.buttons_for(question)


LINK = AnswerLink("t1", "a", "q1", "yes", digest_of(BODY), int(NOW) + LIFETIME_S)

NAMES = st.text(string.ascii_letters + string.digits + "_", min_size=1, max_size=64)
ANSWERS = st.text(st.characters(exclude_categories=()), max_size=64)
TOKENS = st.text(string.ascii_letters + string.digits + "-_", min_size=16, max_size=64)
LINKS = st.builds(AnswerLink, NAMES, NAMES, NAMES, ANSWERS, NAMES, st.integers(1, 2 << 40))


# -- signed ------------------------------------------------------------------------------------------------------------


@given(LINKS, TOKENS)
def test_what_was_signed_is_read_until_it_expires(link: AnswerLink, token: str) -> None:
    text = sign(link, token)
    assert set(text) <= set(string.ascii_letters + string.digits + "-_."), "fit for a URL"
    assert read_link(text, token, link.expires - 0.5) == link
    for now in (link.expires, link.expires + 1):
        with pytest.raises(Refused, match="expired"):
            read_link(text, token, now)


@example(-1, "A")
@given(st.integers(-1, len(sign(LINK, TOKEN)) - 1), st.characters())
def test_a_change_of_any_character_is_refused(at: int, character: str) -> None:
    text = sign(LINK, TOKEN)
    at %= len(text)
    assume(text[at] != character)
    for changed in (
        text[:at] + character + text[at + 1 :],
        text[:at] + text[at + 1 :],
        text[:at] + character + text[at:],
    ):
        if changed != text:
            with pytest.raises(Refused, match="not made by this server"):
                read_link(changed, TOKEN, NOW)


def test_every_character_counts_also_the_bits_that_base64_leaves_over() -> None:
    text = sign(LINK, TOKEN)
    for at, before in enumerate(text):
        for other in string.ascii_letters + string.digits + "-_.=":
            if other != before:
                with pytest.raises(Refused):
                    read_link(text[:at] + other + text[at + 1 :], TOKEN, NOW)


@given(LINKS, LINKS)
def test_no_two_links_can_be_mixed(one: AnswerLink, other: AnswerLink) -> None:
    assume(one != other)
    payload, signature = sign(one, TOKEN).split(".")[0], sign(other, TOKEN).split(".")[1]
    with pytest.raises(Refused, match="not made by this server"):
        read_link(f"{payload}.{signature}", TOKEN, NOW)


@given(st.text() | st.text(string.ascii_letters + string.digits + "-_.=", max_size=300))
def test_nothing_else_is_read(text: str) -> None:
    with pytest.raises(Refused, match="not made by this server"):
        read_link(text, TOKEN, NOW)


@given(LINKS, TOKENS, TOKENS)
def test_a_new_token_ends_all_links(link: AnswerLink, token: str, other: str) -> None:
    assume(token != other)
    with pytest.raises(Refused, match="got a new token"):
        read_link(sign(link, token), other, 0)


@pytest.mark.parametrize(
    "change",
    [{"task": "../t2"}, {"instance": ""}, {"question": "q 1"}, {"answer": None}, {"digest": 5}, {"expires": "9"},
     {"expires": True}, {"more": 1}],
)  # fmt: skip
def test_what_was_signed_in_another_form_is_refused(change: dict[str, Any]) -> None:
    class Odd:
        def _asdict(self) -> dict[str, Any]:
            return {**LINK._asdict(), **change}

    with pytest.raises(Refused, match="another version"):
        read_link(sign(Odd(), TOKEN), TOKEN, 0)  # type: ignore[arg-type]


@pytest.mark.parametrize("token", ["", "short"])
def test_a_token_that_could_be_guessed_signs_nothing(token: str) -> None:
    for attempt in (lambda: sign(LINK, token), lambda: read_link(sign(LINK, TOKEN), token, NOW)):
        with pytest.raises(ValueError, match="a server's token is longer"):
            attempt()


# -- bound to the question ---------------------------------------------------------------------------------------------


OTHERS: dict[str, Any] = {
    "kind": "input", "question": "Deploy!", "options": [{"id": "a", "label": "A"}], "default": "no", "askedAt": "later",
    "deadlineSeconds": 5, "tool": "Bash", "arguments": {"command": "ls"}, "means": {"yes": "allow"},
    "described": "list files", "permissions": "own", "isCut": True, "askedBy": "a1", "askedByType": "explorer",
    "multiple": True, "other": True, "idle": True,
}  # fmt: skip


@pytest.mark.parametrize("key", OTHERS)
def test_a_question_that_differs_in_anything_has_another_digest(key: str) -> None:
    assert digest_of({**BODY, key: OTHERS[key]}) != digest_of(BODY)


def test_no_field_of_a_question_is_left_out() -> None:
    assert len(OTHERS) + 1 == len(Question._fields), "and its id"


def test_who_asks_and_the_order_of_the_keys_make_no_other_question() -> None:
    assert digest_of({**BODY, "asker": {"pid": 8}, "id": "q1"}) == digest_of(BODY)
    assert digest_of(dict(reversed(BODY.items()))) == digest_of(BODY)


# -- which answers are offered -----------------------------------------------------------------------------------------


def select(*labels: str, **more: Any) -> dict[str, Any]:
    options = [{"id": f"o{number}", "label": label} for number, label in enumerate(labels)]
    return {"kind": "select", "question": "Which?", "options": options, **more}


def permit(**more: Any) -> dict[str, Any]:
    means = {"o0": "allow", "o1": "allow_always", "o2": "deny", "o3": "deny"}
    return {**select("Yes", "Always", "No", "No, and stop"), "tool": "Bash", "means": means, **more}


def test_a_confirm_and_a_short_select_offer_all_of_their_answers() -> None:
    assert buttons_for(BODY) == (("Yes", "yes"), ("No", "no"))
    assert buttons_for(select("Main", "Develop")) == (("Main", "o0"), ("Develop", "o1"))
    assert len(buttons_for(select("a", "b", "c"))) == 3


@pytest.mark.parametrize(
    "body",
    [
        select("a", "b", "c", "d"), select(), select("a", "b", multiple=True),
        select("a" * 31, "b"), select("a\nb", "b"),
        select("", "b"), select("same", "same"), select("Open", "b"), select("deny", "b"), select("a\x1b[0m", "b"),
        select("token=hunter2", "b"), select(" a", "b"),
        {**select("a", "b"), "options": [{"id": "x" * 65, "label": "a"}]},
        {**select("a", "b"), "options": [{"id": "x", "label": "a"}, {"id": "x", "label": "b"}]},
        {**BODY, "idle": True}, {"kind": "input", "question": "Which?"}, {}, {"kind": "confirm", "question": 5},
    ],
)  # fmt: skip
def test_what_a_message_cannot_show_whole_is_not_offered(body: dict[str, Any]) -> None:
    assert buttons_for(body) == ()


@pytest.mark.parametrize(
    "text",
    ["Deploy?\nAnd delete all?", "Deploy? ", "\nDeploy?", "Deploy\x1b[8m?", "Push with ghp_0123456789abcdefABCD?",
     "Use password: hunter2?", "x" * 401, "", "\u202eDeploy?"],
)  # fmt: skip
def test_a_text_that_would_be_altered_has_no_buttons(text: str) -> None:
    for body in (BODY, select("a", "b"), permit()):
        assert buttons_for({**body, "question": text}) == ()


def test_of_a_permission_only_the_denial_is_offered() -> None:
    assert buttons_for(permit()) == ((DENY_LABEL, "o2"),)
    assert buttons_for({**permit(), "tool": None}) == ((DENY_LABEL, "o2"),), "it has meanings, so it is one"
    assert buttons_for({**permit(), "means": None}) == ()
    assert buttons_for({**permit(), "kind": "confirm", "options": []}) == ()
    twice = [{"id": "x", "label": "Allow"}, {"id": "x", "label": "No"}]
    assert buttons_for(permit(options=twice, means={"x": "deny"})) == ()


TEXTS = st.sampled_from(["Deploy?", "a", "b", "Open", "deny", "x\ny", "", "token=hunter2"]) | st.text(max_size=40)
MEANINGS = st.sampled_from(["allow", "allow_always", "deny"])
BODIES = st.fixed_dictionaries(
    {"kind": st.sampled_from(["select", "confirm", "input"]), "question": TEXTS},
    optional={
        "options": st.lists(st.fixed_dictionaries({"id": st.sampled_from("abcde"), "label": TEXTS}), max_size=5),
        "tool": st.none() | st.just("Bash"),
        "means": st.none() | st.dictionaries(st.sampled_from("abcde"), MEANINGS),
        "multiple": st.booleans(), "other": st.booleans(), "idle": st.booleans(),
    },
)  # fmt: skip


@given(BODIES)
def test_whatever_is_asked_what_is_offered_is_shown_and_is_an_answer(value: dict[str, Any]) -> None:
    question = question_in("q1", value)
    assume(question is not None)
    assert question is not None
    buttons = buttons_for(value)
    assert len(buttons) <= MOST_BUTTONS
    for label, answer in buttons:
        assert clean(question.text, 400) == question.text
        assert clean(label, 30) == label
        assert check_answer(question, answer) == answer
        if question.is_permission:
            assert question.means is not None
            assert question.means[answer] == "deny"
    if buttons and not question.is_permission and question.kind == "select":
        assert [(one.label, one.id) for one in question.options] == list(map(tuple, buttons))


# -- where they may go -------------------------------------------------------------------------------------------------


def test_a_target_has_buttons_only_if_it_says_so() -> None:
    target = NoticeTarget("phone", "ntfy", url="https://ntfy.sh/x")
    for one in (target, target._replace(buttons=True)):
        assert target_from(json.loads(json.dumps(one.to_json()))) == one
    for value in ("true", 1, None, [True]):
        assert target_from({**target.to_json(), "buttons": value}).buttons is False
