"""At stake: what the program of plain models prints becomes the right rows, questions and end, whatever it prints."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.domain.states import Reason
from agentctl.drivers.dialogue import SILENT, Action, Ask, Finished, HangUp, Note, Retrying, Say, StopProgram, Withdraw
from agentctl.drivers.llm import DRIVER
from agentctl.drivers.llm.dialogue import LlmDialogue
from agentctl.drivers.order import Order, order_from

ORDER = Order(
    driver="llm", program="/usr/bin/python3", agent="general", prompt="Fix it", instance="fix", task_id="t1",
    tools=["Read"], provider={"name": "lab", "model": "qwen3", "url": "http://127.0.0.1:1/v1"}, read_only=True,
)  # fmt: skip
KINDS = ["session", "text", "thought", "tool_call", "tool_result", "usage", "windows", "ask", "withdraw", "retrying",
         "progress", "compacted", "note", "turn_end", "failed", "nonsense"]  # fmt: skip
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)
FIELDS = ["id", "name", "text", "arguments", "status", "file", "input", "cost", "windows", "key", "tool", "options",
          "question", "reason", "message", "taken", "rounds", "session", "tries"]  # fmt: skip
LINES = st.builds(
    lambda kind, rest: {**rest, "type": kind}, st.sampled_from(KINDS),
    st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=6),
)  # fmt: skip


def begun() -> LlmDialogue:
    dialogue = LlmDialogue(ORDER)
    dialogue.begin()
    return dialogue


def got(dialogue: LlmDialogue, kind: str, **fields: Any) -> list[Action]:
    return list(dialogue.received(json.dumps({"type": kind, **fields}).encode()))


def said(actions: list[Action]) -> list[dict[str, Any]]:
    return [json.loads(action.data) for action in actions if isinstance(action, Say)]


@given(st.lists(LINES, max_size=8), st.binary(max_size=40))
def test_any_lines_are_survived(lines: list[dict[str, Any]], rest: bytes) -> None:
    dialogue = begun()
    for line in lines:
        got(dialogue, **{"kind": line.pop("type"), **line})
    dialogue.received(rest)
    dialogue.complained(rest)
    assert dialogue.ended(1).usage.keys() == {"input", "output", "cached"}


def test_the_opening_has_what_restricts_it_and_no_more_than_the_order() -> None:
    opening, prompt = said(list(LlmDialogue(ORDER).begin()))
    assert (opening["type"], opening["tools"], opening["readOnly"]) == ("open", ["Read"], True)
    assert (opening["session"], opening["provider"]) == ("t1/fix", dict(ORDER.provider))
    assert prompt == {"type": "prompt", "text": "Fix it", "now": False}


def test_an_order_survives_its_file() -> None:
    assert order_from(json.loads(json.dumps(ORDER.to_json()))).provider == ORDER.provider


def test_a_message_that_crosses_the_end_of_a_turn_has_a_turn_of_its_own() -> None:
    dialogue = begun()
    dialogue.told("And that", interrupt=False)
    assert got(dialogue, "turn_end", taken=1, rounds=0) == []
    assert dialogue.ended(0).reason is Reason.NOT_STARTED
    (finished,) = got(dialogue, "turn_end", taken=2, rounds=3)
    assert isinstance(finished, Finished)
    assert (finished.outcome.reason, finished.outcome.turns_used) == (None, 3)


def test_only_what_was_said_last_is_the_answer() -> None:
    dialogue = begun()
    got(dialogue, "text", id="m1", text="Let me look first.")
    (finished,) = got(dialogue, "turn_end", taken=1, rounds=1, silent=True)
    assert isinstance(finished, Finished)
    assert (finished.outcome.reason, finished.outcome.final_message) == (None, None)
    assert finished.outcome.message == SILENT


def test_what_a_kept_agent_said_before_does_not_answer_the_next_message() -> None:
    dialogue = begun()
    got(dialogue, "text", id="m1", text="The first answer.")
    got(dialogue, "turn_end", taken=1, rounds=0)
    dialogue.told("And that", interrupt=False)
    (finished,) = got(dialogue, "turn_end", taken=2, rounds=0, reason="model_error", message="the server answered 500")
    assert isinstance(finished, Finished)
    assert finished.outcome.final_message is None


@pytest.mark.parametrize(
    ("answer", "reason", "by_rule", "line"),
    [
        ("allow", "", False, {"allow": True}),
        ("deny", "", False, {"allow": False, "text": "The user denied this."}),
        ("deny", "not now", False, {"allow": False, "text": "The user denied this. not now"}),
        ("deny", "", True, {"allow": False, "text": "A rule denies this to you; no user was asked."}),
        ("yes please", "", False, {"allow": False, "text": "The user denied this. yes please"}),
    ],
)
def test_only_the_word_allow_allows(answer: str, reason: str, line: dict[str, Any], *, by_rule: bool) -> None:
    dialogue = begun()
    (ask,) = got(dialogue, "ask", key="c1", tool="Bash", arguments={"command": "ls"})
    assert isinstance(ask, Ask)
    assert said(list(dialogue.answered("c1", answer, reason, by_rule=by_rule))) == [
        {"type": "answer", "key": "c1", **line}
    ]
    assert dialogue.answered("c1", "allow") == ()


def test_an_interrupt_withdraws_what_is_open_and_ends_the_input() -> None:
    dialogue = begun()
    got(dialogue, "ask", key="c1", tool="Bash", arguments={})
    withdraw, *_, hang_up = dialogue.interrupted()
    assert (withdraw, hang_up) == (Withdraw("c1"), HangUp())
    (finished,) = got(dialogue, "turn_end", taken=1, rounds=0, reason="interrupted", message="broken off")
    assert isinstance(finished, Finished)
    assert finished.outcome.reason is Reason.SIGNAL


def test_tokens_and_costs_add_up() -> None:
    dialogue = begun()
    for number in range(2):
        got(dialogue, "usage", id=f"m{number}", input=3, output=2, cached=1, cost=0.5)
    assert dialogue.ended(1).usage == {"input": 6, "output": 4, "cached": 2}
    assert dialogue.ended(1).cost_usd == 1.0


def test_tokens_beyond_all_counting_can_still_be_written() -> None:
    dialogue = begun()
    for number in range(20):
        got(dialogue, "usage", id=f"m{number}", input=10**4299, output=10**4299, cached=-1, cost=1e300)
    json.dumps(dialogue.ended(1).usage)
    assert dialogue.ended(1).cost_usd is None


def test_options_without_end_are_read_and_not_chosen() -> None:
    for options in ([f"option {number}" for number in range(10_000)], ["a", "b" * 10_000_000]):
        (ask,) = got(begun(), "ask", key="k", question="Which?" * 1_000_000, options=options)
        assert isinstance(ask, Ask)
        assert not ask.options
        assert ask.question.startswith("Which?")


def test_retries_and_failures_have_their_reasons() -> None:
    dialogue = begun()
    note, retrying = got(dialogue, "retrying", reason="overloaded", message="busy", tries=1)
    assert isinstance(note, Note)
    assert retrying == Retrying(Reason.OVERLOADED, "busy")
    (stop,) = got(dialogue, "failed", reason="auth", message="no key")
    assert isinstance(stop, StopProgram)
    assert stop.outcome.reason is Reason.AUTH


@pytest.mark.parametrize(("code", "reason"), [(-9, Reason.SIGNAL), (143, Reason.SIGNAL), (0, Reason.TRUNCATED)])
def test_an_end_without_a_word_is_never_natural(code: int, reason: Reason) -> None:
    dialogue = begun()
    got(dialogue, "session", session="t1/fix")
    assert dialogue.ended(code).reason is reason


def test_it_does_what_it_says_that_it_honours() -> None:
    assert {"readOnly", "tools", "maxTurns", "maxBudgetUsd", "permissions", "resume", "keep"} <= DRIVER.honours
