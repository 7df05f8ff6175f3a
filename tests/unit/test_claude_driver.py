"""At stake: Claude Code's output is read correctly, whatever it prints; its questions get the person's answers."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from agentctl.domain.activity.row import Phase, RowType
from agentctl.domain.answers import ALLOW, ALLOW_ALWAYS, DENY, meaning
from agentctl.domain.states import Reason
from agentctl.drivers.claude import DRIVER
from agentctl.drivers.claude.usage import Meter, Tokens, Usage
from agentctl.drivers.dialogue import Ask, HangUp, Withdraw
from tests.claude_lines import (
    ORDER,
    feed,
    lifecycle,
    outcomes,
    recorded,
    result,
    rows,
    said,
    sent,
    started,
    system,
)

# -- recordings ----------------------------------------------------------------------------------------------------


class Told(NamedTuple):
    """The expected results of a recording."""

    reason: Reason | None
    final: str | None
    turns: int
    usage: tuple[int, int, int]
    cost: float | None
    #: (id without its prefix, status) of the tools and sub-agents that ended.
    ends: list[tuple[str | None, str | None]]


_GREETING = "Hello from the stub model. This is a plain answer."
TOLD = {
    "text": Told(None, _GREETING, 0, (12683, 13, 0), 0.050992, []),
    "tool-allowed": Told(
        None, "Done: tool after 1 tool result(s).", 1, (19074, 28, 6386), 0.0781332, [("Bash", "completed")]
    ),
    "ask": Told(None, "Done: ask after 1 tool result(s).", 1, (19099, 31, 6415), 0.078299, [("Bash", "denied")]),
    "parallel": Told(
        None, "Done: parallel after 3 tool result(s).", 1, (19139, 59, 6451), 0.0790262, [("Bash", "completed")] * 3
    ),
    "subagent": Told(
        None,
        "Done: subagent after 1 tool result(s).",
        1,
        (32292, 73, 11032),
        0.1328344,
        [("Bash", "completed"), (None, "completed")],
    ),
    "max-turns": Told(
        Reason.MAX_TURNS, "I will run a command. ", 2, (19073, 40, 6386), 0.0783692, [("Bash", "completed")] * 2
    ),
    "error-429": Told(Reason.RATE_LIMITED, None, 0, (0, 0, 0), None, []),
    "slow-sigint": Told(
        Reason.SIGNAL,
        "word0 word1 word2 word3 word4 word5 word6 word7 word8 ",
        0,
        (12687, 18, 0),
        0.051108,
        [],
    ),
    "resume-1": Told(None, _GREETING, 0, (12686, 13, 0), 0.051004, []),
    "resume-2": Told(None, "I recall 2 marked message(s): text, recall", 0, (6367, 11, 6367), 0.0269614, []),
}


@pytest.mark.parametrize("name", TOLD)
def test_a_recording_comes_to_its_ending_usage_and_activity(name: str) -> None:
    order = ORDER._replace(resume="84cf43cf-2e35-42a0-b5a5-f3ee13f82c07") if name == "resume-2" else ORDER
    dialogue, told = started(order), TOLD[name]
    actions = feed(dialogue, recorded(name))
    (outcome,) = outcomes(actions)
    assert (outcome.reason, outcome.final_message, outcome.turns_used) == (told.reason, told.final, told.turns)
    assert tuple(outcome.usage.values()) == told.usage
    assert outcome.cost_usd == (pytest.approx(told.cost) if told.cost else None)
    assert outcome.session == recorded(name)[0]["session_id"]
    ended = [row for row in rows(actions, RowType.TOOL, RowType.AGENT) if row.phase == Phase.END]
    assert [(row.name, row.status) for row in ended] == told.ends
    assert dialogue.ended(0) == outcome


@pytest.mark.parametrize("name", TOLD)
def test_the_usage_of_the_rows_adds_up_to_that_of_the_outcome(name: str) -> None:
    order = ORDER._replace(resume="x") if name == "resume-2" else ORDER
    actions = feed(started(order), recorded(name))
    usage = {row.id: row.detail or {} for row in rows(actions, RowType.USAGE)}
    (outcome,) = outcomes(actions)
    assert {key: sum(one[key] for one in usage.values()) for key in outcome.usage} == outcome.usage


def test_a_version_that_tells_less_of_usage_gives_the_same() -> None:
    values = recorded("duplex-two-turns")
    for value in values:
        value.pop("model_usage_since_last_result", None)
    last = outcomes(feed(started(), values))[-1]
    assert last.usage == {"input": 19059, "output": 24, "cached": 6369}
    assert last.cost_usd == pytest.approx(0.0779898)


@pytest.mark.parametrize(("told", "cost"), [([None, None], None), ([1.0, None, 1.5], 1.5), ([0.0], 0.0)])
def test_a_cost_that_is_not_told_is_not_zero(told: list[float | None], cost: float | None) -> None:
    spent = Meter(is_fresh=True)
    for one in told:
        model = {"inputTokens": 3} | ({} if one is None else {"costUSD": one})
        spent.take({"modelUsage": {"model": model}})
    assert spent.spent == Usage(Tokens(input=3), cost)


def test_nothing_in_the_recordings_is_unknown() -> None:
    for name in [*TOLD, "duplex-ask-allow", "duplex-question", "duplex-two-turns"]:
        assert not [row for row in rows(feed(started(), recorded(name))) if row.id == "unknown"], name


def test_a_sub_agent_is_one_row_and_what_it_does_lies_below() -> None:
    found = rows(feed(started(), recorded("subagent")))
    agent = [row for row in found if row.type == RowType.AGENT]
    assert {row.id for row in agent} == {"toolu_call_18ea296b98984762_0"}
    start, *_, end = agent
    assert (start.phase, start.agent_type, start.name) == (Phase.START, "general-purpose", "stub subagent")
    assert (end.phase, end.status, end.text) == (Phase.END, "completed", "Done: tool after 1 tool result(s).")
    below = [(row.type, row.name) for row in found if row.parent == start.id]
    assert [kind for kind, _ in below].count(RowType.TOOL) == 2
    assert (RowType.MESSAGE, "user") in below
    assert start.id not in {row.id for row in found if row.type == RowType.TOOL}


# -- questions and permissions -------------------------------------------------------------------------------------


def permission(tool: str = "Bash", **more: Any) -> dict[str, Any]:
    request = {"subtype": "can_use_tool", "tool_name": tool, "input": {"command": "ls"}, **more}
    return {"type": "control_request", "request_id": "r1", "request": request}


def test_an_allowed_permission_is_answered_as_the_recording_was() -> None:
    dialogue = started()
    actions = feed(dialogue, recorded("duplex-ask-allow"))
    (ask,) = [action for action in actions if isinstance(action, Ask)]
    assert (ask.tool, ask.arguments) == ("Bash", {"command": "touch stub-ask.txt", "description": "stub command"})
    assert [key for key, _ in ask.options] == ["allow", "allow_always", "deny"]
    assert [meaning(ask.means, key) for key, _ in ask.options] == [ALLOW, ALLOW_ALWAYS, DENY]
    assert said(dialogue.answered(ask.key, "allow")) == sent("duplex-ask-allow", "control_response")
    assert not dialogue.answered(ask.key, "allow")


def test_a_question_is_answered_as_the_recording_was() -> None:
    dialogue = started()
    (ask,) = [action for action in feed(dialogue, recorded("duplex-question")) if isinstance(action, Ask)]
    assert ask.options == [("red", "red: a red one"), ("blue", "blue: a blue one")]
    assert (ask.question, ask.tool, ask.other) == ("Which colour?", None, True)
    assert said(dialogue.answered(ask.key, "blue")) == sent("duplex-question", "control_response")


def test_always_is_for_this_session_and_for_the_rules_alone() -> None:
    dialogue = started()
    (ask,) = [action for action in feed(dialogue, recorded("duplex-ask-allow")) if isinstance(action, Ask)]
    (answer,) = said(dialogue.answered(ask.key, "allow_always"))
    (rule,) = answer["response"]["response"]["updatedPermissions"]
    assert (rule["type"], rule["destination"]) == ("addRules", "session")


@pytest.mark.parametrize(("answer", "message"), [("deny", "The user denied this."), ("use ls", "use ls")])
def test_a_denial_says_why_and_lets_the_turn_go_on(answer: str, message: str) -> None:
    dialogue = started()
    feed(dialogue, [permission()])
    (told,) = said(dialogue.answered("r1", answer))
    assert told["response"]["response"] == {"behavior": "deny", "message": message, "interrupt": False}


def test_several_questions_of_one_request_are_answered_together() -> None:
    options = [{"label": "a, b"}, {"label": "c"}]
    questions = [
        {"question": "One?", "options": options},
        {"question": "Many?", "options": options, "multiSelect": True},
    ]
    dialogue = started()
    asks = feed(dialogue, [permission("AskUserQuestion", input={"questions": questions})])
    one, many = [ask for ask in asks if isinstance(ask, Ask)]
    assert [key for key, _ in one.options] == ["1", "2"], "a label with a comma is not an id"
    assert many.multiple
    assert not one.multiple
    assert not dialogue.answered(many.key, "1,2,other")
    (told,) = said(dialogue.answered(one.key, "something else"))
    answers = told["response"]["response"]["updatedInput"]["answers"]
    assert answers == {"One?": "something else", "Many?": "a, b, c, other"}


def test_who_asks_is_the_sub_agent() -> None:
    begun = system("task_started", task_id="t1", tool_use_id="call-1", subagent_type="explore")
    (ask,) = [one for one in feed(started(), [begun, permission(agent_id="t1")]) if isinstance(one, Ask)]
    assert (ask.asked_by, ask.asked_by_type) == ("call-1", "explore")


def test_what_is_taken_back_is_withdrawn_and_cannot_be_answered_any_more() -> None:
    dialogue = started()
    actions = feed(dialogue, [permission(), {"type": "control_cancel_request", "request_id": "r1"}])
    assert [action for action in actions if isinstance(action, Withdraw)] == [Withdraw("r1")]
    assert not dialogue.answered("r1", "allow")


def test_an_unknown_request_is_answered_with_an_error_and_told_of() -> None:
    request = {"type": "control_request", "request_id": "r9", "request": {"subtype": "new_thing"}}
    actions = feed(started(), [request])
    (answer,) = said(actions)
    assert (answer["response"]["subtype"], answer["response"]["request_id"]) == ("error", "r9")
    assert "new_thing" in str(rows(actions, RowType.NOTE)[0].text)


@pytest.mark.parametrize("tool", ["Bash", "Write", "Edit", "NotebookEdit", "Agent", "mcp__any__write"])
def test_a_read_only_agent_asks_nobody_for_a_tool_that_writes(tool: str) -> None:
    actions = feed(started(ORDER._replace(read_only=True)), [permission(tool)])
    assert not [action for action in actions if isinstance(action, Ask)]
    assert said(actions)[0]["response"]["response"]["behavior"] == "deny"


# -- turns and their end -------------------------------------------------------------------------------------------


def test_two_turns_finish_twice_and_the_last_result_is_the_answer() -> None:
    values, dialogue = recorded("duplex-two-turns"), started()
    first = next(index for index, one in enumerate(values) if one["type"] == "result")
    assert outcomes(feed(dialogue, values[: first + 1]))[-1].final_message == _GREETING
    dialogue.told("recall", interrupt=False)
    assert dialogue.ended(-9).reason is Reason.SIGNAL, "the first turn's answer is not that of a second one"
    (last,) = outcomes(feed(dialogue, values[first + 1 :]))
    assert last.final_message == "I recall 2 marked message(s): text, recall"


def test_a_message_that_no_turn_has_taken_up_holds_the_end_back() -> None:
    dialogue = DRIVER.dialogue(ORDER)
    (prompt,) = [one for one in said(dialogue.begin()) if one["type"] == "user"]
    (late,) = said(dialogue.told("and this", interrupt=False))
    assert not outcomes(feed(dialogue, [lifecycle(prompt, "started"), lifecycle(late, "queued"), result()]))
    assert len(outcomes(feed(dialogue, [lifecycle(late, "started"), result(result="both")]))) == 1


def test_an_interrupting_message_stops_the_turn_first() -> None:
    dialogue = started()
    stop, message = said(dialogue.told("now", interrupt=True))
    assert stop["request"] == {"subtype": "interrupt"}
    assert message["message"]["content"][0]["text"] == "now"
    feed(dialogue, [result()])
    assert len(said(dialogue.told("later", interrupt=True))) == 1, "there is no turn to stop"


def test_background_work_holds_the_end_back() -> None:
    running = system("background_tasks_changed", tasks=[{"task_id": "t1"}])
    over = system("background_tasks_changed", tasks=[])
    dialogue = started()
    assert not outcomes(feed(dialogue, [running, result(), over]))
    assert outcomes(feed(dialogue, [result(result="all")]))[0].final_message == "all"


def test_where_the_program_tells_its_state_only_idle_is_the_end() -> None:
    dialogue = started()
    busy, idle = (system("session_state_changed", state=state) for state in ("running", "idle"))
    assert not outcomes(feed(dialogue, [busy, result()]))
    assert len(outcomes(feed(dialogue, [idle, idle]))) == 1


def test_an_interrupt_withdraws_what_is_open_and_hangs_up() -> None:
    dialogue = started()
    feed(dialogue, [permission()])
    withdraw, stop, hang_up = dialogue.interrupted()
    assert (withdraw, hang_up) == (Withdraw("r1"), HangUp())
    assert said([stop])[0]["request"] == {"subtype": "interrupt"}
