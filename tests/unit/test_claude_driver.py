"""At stake: Claude Code's output is read correctly, whatever it prints; its questions get the person's answers."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import pytest

from agentctl.domain.activity.row import Phase, RowType
from agentctl.domain.agent.permissions import parse_policy
from agentctl.domain.question import ALLOW, ALLOW_ALWAYS, DENY, meaning
from agentctl.domain.states import Reason
from agentctl.drivers.claude import DRIVER
from agentctl.drivers.claude.usage import Meter, Tokens, Usage
from agentctl.drivers.dialogue import Action, Ask, HangUp, Withdraw
from agentctl.drivers.order import OWN_PERMISSIONS, Order
from tests.claude_lines import (
    ASKING,
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
    assert (start.detail or {})["prompt"] == "Report back. SCENARIO:tool"
    assert (RowType.MESSAGE, "user") not in below, "it is told what its own row tells already"
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


def test_always_is_a_rule_of_ours_for_exactly_this_command() -> None:
    dialogue = started()
    (ask,) = [action for action in feed(dialogue, recorded("duplex-ask-allow")) if isinstance(action, Ask)]
    assert ask.options[1] == ("allow_always", "Allow from now on: Bash(touch stub-ask.txt)")
    assert ask.lasting == [{"tool": "Bash", "pattern": "touch stub-ask.txt", "answer": "allow"}]
    assert said(dialogue.answered(ask.key, "allow_always")) == sent("duplex-ask-allow", "control_response")


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


# -- calls that are about to be made -------------------------------------------------------------------------------


def hooked(tool: str = "Bash", call: str = "c1", **arguments: Any) -> dict[str, Any]:
    """Return the line by which the program calls our hook."""
    about = {"hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": arguments, "cwd": "/w"}
    about |= {"transcript_path": "/home/me/.claude/projects/-w/5c.jsonl", "permission_mode": "default"}
    request = {"subtype": "hook_callback", "callback_id": "agentctl", "tool_use_id": call, "input": about}
    return {"type": "control_request", "request_id": "h1", "request": request}


def made(call: str = "c1", *, is_error: bool = False, decision: str | None = None) -> dict[str, Any]:
    """Return the line with the result of a call."""
    block = {"type": "tool_result", "tool_use_id": call, "content": "done", "is_error": is_error}
    meta = [{"id": call, "permission_decision": {"decision": decision}}] if decision else None
    return {"type": "user", "message": {"content": [block]}, "tool_result_meta": meta}


def decision(actions: Iterable[Action]) -> tuple[str | None, str | None]:
    """Return what our hook has answered, and why."""
    (answer,) = said(actions)
    output = answer["response"]["response"].get("hookSpecificOutput", {})
    return output.get("permissionDecision"), output.get("permissionDecisionReason")


ALLOWING, OWN = (ORDER._replace(permissions=parse_policy(policy)) for policy in ("allow", "own"))
DENY_BASH = [{"tool": "Bash", "pattern": "*", "answer": "deny"}]


@pytest.mark.parametrize(
    ("order", "is_asked"),
    [
        (ASKING, True),
        (ASKING._replace(permissions=parse_policy("deny")), True),
        (ASKING._replace(read_only=True), True),
        (ALLOWING, False),
        (ALLOWING._replace(permissions=[*DENY_BASH, *ALLOWING.permissions]), True),
        (ALLOWING._replace(denied_above=[DENY_BASH]), True),
        (OWN, False),
        (OWN._replace(permissions=[*DENY_BASH, *OWN.permissions]), True),
    ],
)
def test_our_hook_is_called_before_each_call_wherever_anything_is_to_be_held(order: Order, is_asked: bool) -> None:
    (opening, *_) = said(DRIVER.dialogue(order).begin())
    hooks = opening["request"].get("hooks")
    assert bool(hooks) is is_asked
    if is_asked:
        (matcher,) = hooks["PreToolUse"]
        assert matcher["matcher"] is None, "for every tool"
        assert matcher["onFailure"] == "block", "the program goes on otherwise where an answer is not valid"
        assert matcher["timeout"] * 1000 < 1 << 31, "a timer that overflows ends at once"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("allow", ("allow", "agentctl")),
        ("allow_always", ("allow", "agentctl")),
        ("deny", ("deny", "The user denied this.")),
        ("use ls", ("deny", "use ls")),
        ("leave", (None, None)),
    ],
)
def test_a_call_is_answered_by_the_hook_itself(answer: str, expected: tuple[str | None, str | None]) -> None:
    dialogue = started(ASKING)
    (ask,) = [one for one in feed(dialogue, [hooked(command="make", description="harmless")]) if isinstance(one, Ask)]
    assert (ask.tool, ask.reads, ask.leave) == ("Bash", None, "leave")
    assert ask.question == "", "what is run names the request, not what the model says of it"
    assert "leave" not in dict(ask.options), "nobody is offered it"
    assert decision(dialogue.answered(ask.key, answer)) == expected


@pytest.mark.parametrize(
    ("tool", "arguments", "reads"),
    [
        ("Read", {"file_path": "/w/a"}, ["/w/a"]),
        ("Grep", {"pattern": "x"}, ["/w/"]),
        ("Grep", {"pattern": "x", "path": "/etc"}, ["/etc"]),
        ("Glob", {"pattern": "/etc/*"}, ["/w/", "/etc/"]),
        ("Glob", {"pattern": "*/../../*"}, None),
        ("EnterPlanMode", {}, []),
        ("Agent", {"prompt": "x", "subagent_type": "any"}, []),
        ("Agent", {"prompt": "x", "isolation": "worktree"}, None),
        ("Agent", {"prompt": "x", "mode": "bypassPermissions"}, None),
        ("Bash", {"command": "ls"}, None),
        ("Write", {"file_path": "/w/a"}, None),
        ("mcp__any__read", {}, None),
        ("SomethingNew", {}, None),
    ],
)
def test_what_only_reads_is_known_by_its_name_and_arguments(
    tool: str, arguments: dict[str, Any], reads: list[str] | None
) -> None:
    (ask,) = [one for one in feed(started(ASKING), [hooked(tool, **arguments)]) if isinstance(one, Ask)]
    assert ask.reads == reads
    assert "/home/me/.claude/projects/-w/5c" in ask.places


def test_what_the_program_asks_again_is_answered_as_before_if_it_is_the_same() -> None:
    dialogue = started(ASKING)
    feed(dialogue, [hooked(command="make")])
    dialogue.answered("h1", "allow")
    again = permission(input={"command": "make"}, tool_use_id="c1")
    (answer,) = said(feed(dialogue, [again]))
    assert answer["response"]["response"] == {"behavior": "allow", "updatedInput": {"command": "make"}}
    changed = permission(input={"command": "make install"}, tool_use_id="c1")
    other = permission(input={"command": "make"}, tool_use_id="c2")
    assert [one.arguments for one in feed(dialogue, [changed, other]) if isinstance(one, Ask)] == [
        {"command": "make install"},
        {"command": "make"},
    ]


def test_a_call_that_is_left_to_the_program_is_asked_about_if_it_asks() -> None:
    dialogue = started(ASKING)
    feed(dialogue, [hooked("Read", file_path="/w/.env")])
    dialogue.answered("h1", "leave")
    asked = permission("Read", input={"file_path": "/w/.env"}, tool_use_id="c1")
    (ask,) = [one for one in feed(dialogue, [asked]) if isinstance(one, Ask)]
    assert (ask.leave, ask.reads) == ("", None), "a person's own rule has it ask: it is not left again"


@pytest.mark.parametrize("tool", ["Bash", "Write", "Agent", "Skill", "mcp__any__write"])
def test_a_read_only_agent_may_not_call_what_it_was_not_offered(tool: str) -> None:
    actions = feed(started(ASKING._replace(read_only=True)), [hooked(tool)])
    assert not [action for action in actions if isinstance(action, Ask)]
    assert decision(actions) == ("deny", f"{tool} may not be used by this agent.")


def test_a_tool_of_two_names_is_offered_by_either() -> None:
    for name in ("Agent", "Task"):
        actions = feed(started(ASKING._replace(tools=[name])), [hooked("Agent", prompt="x")])
        assert [ask.reads for ask in actions if isinstance(ask, Ask)] == [[]]
    assert decision(feed(started(ASKING._replace(tools=["Read"])), [hooked("Agent", prompt="x")]))[0] == "deny"


def test_a_read_only_agent_may_give_its_answer() -> None:
    actions = feed(started(ASKING._replace(read_only=True)), [hooked("StructuredOutput", a=1)])
    assert [ask.reads for ask in actions if isinstance(ask, Ask)] == [[]]


def test_a_call_that_is_interrupted_is_no_longer_asked_about() -> None:
    dialogue = started(ASKING)
    feed(dialogue, [hooked(command="make")])
    assert Withdraw("h1") in feed(dialogue, [{"type": "control_cancel_request", "request_id": "h1"}])


# -- a program that does not keep to its order ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order", "values", "expected"),
    [
        (ASKING, [hooked(), made()], None),
        (ASKING, [made("c2")], Reason.PERMISSION_DENIED),
        (ASKING, [made("c2", is_error=True, decision="accept")], Reason.PERMISSION_DENIED),
        (ASKING, [made("c2", is_error=True, decision="reject")], None),
        (ASKING, [made("c2", is_error=True)], None),
        (ALLOWING, [made("c2")], None),
        (OWN, [made("c2")], None),
        (OWN._replace(permissions=[*DENY_BASH, *OWN.permissions]), [made("c2")], Reason.PERMISSION_DENIED),
    ],
)
def test_a_call_that_was_made_unasked_stops_the_worker(
    order: Order, values: list[dict[str, Any]], expected: Reason | None
) -> None:
    begun = system("init", session_id="s", permissionMode="default")
    found = outcomes(feed(started(order), [begun, *values]))
    assert [one.reason for one in found] == ([expected] if expected else [])
    assert all((OWN_PERMISSIONS in str(one.message)) == (order == ASKING) for one in found)
    assert all(f"@{DRIVER.tested}" in str(one.message) for one in found)


@pytest.mark.parametrize("mode", ["acceptEdits", "auto", "bypassPermissions", "dontAsk", "aNewOne"])
@pytest.mark.parametrize("order", [ASKING, ALLOWING, ASKING._replace(read_only=True)])
def test_a_mode_that_was_not_ordered_stops_the_worker(order: Order, mode: str) -> None:
    dialogue = started(order)
    (outcome,) = outcomes(feed(dialogue, [system("init", session_id="s", permissionMode=mode)]))
    assert (outcome.reason, mode in str(outcome.message)) == (Reason.NOT_STARTED, True)
    feed(dialogue, [system("init", session_id="s", permissionMode="default")])
    (outcome,) = outcomes(feed(dialogue, [system("status", status=None, permissionMode=mode)]))
    assert outcome.reason is Reason.PERMISSION_DENIED
    assert (OWN_PERMISSIONS in str(outcome.message)) == (not order.read_only), "that loosens no agent that only reads"
    assert f"@{DRIVER.tested}" in str(outcome.message)


def test_plan_mode_is_none_of_them_and_the_persons_own_mode_is_theirs() -> None:
    plan = [system("init", permissionMode="default"), system("status", status=None, permissionMode="plan")]
    assert not outcomes(feed(started(ASKING), [*plan, system("status", status="compacting")]))
    assert not outcomes(feed(started(OWN), [system("init", permissionMode="bypassPermissions")]))


def test_a_program_that_refuses_our_hook_is_not_used() -> None:
    dialogue = DRIVER.dialogue(ASKING)
    (opening, *_) = said(dialogue.begin())
    refusal = {"subtype": "error", "request_id": opening["request_id"], "error": "hooks are not known"}
    (outcome,) = outcomes(feed(dialogue, [{"type": "control_response", "response": refusal}]))
    assert outcome.reason is Reason.NOT_STARTED
    assert "hooks are not known" in str(outcome.message)


PROMPTED = {
    "type": "control_request", "request_id": "h0",
    "request": {"subtype": "hook_callback", "callback_id": "agentctl-prompt", "input": {"prompt": "x"}},
}  # fmt: skip


@pytest.mark.parametrize(
    ("order", "version", "before", "is_stopped"),
    [
        (ASKING, "99.0.1", [], True),
        (ALLOWING._replace(read_only=True), "99", [], True),
        (ASKING, "99.0.1", [PROMPTED], False),
        (ASKING, DRIVER.tested, [], False),
        (ASKING, "", [], False),
        (OWN, "99.0.1", [], False),
    ],
)
def test_a_release_that_nobody_has_tried_and_that_calls_no_hook_is_not_used(
    order: Order, version: str, before: list[dict[str, Any]], is_stopped: bool
) -> None:
    begun = system("init", session_id="s", permissionMode="default", claude_code_version=version)
    actions = feed(started(order), [*before, begun])
    found = outcomes(actions)
    assert [one.reason for one in found] == [Reason.NOT_STARTED] * is_stopped
    assert all(version in str(one.message) and f"@{DRIVER.tested}" in str(one.message) for one in found)
    assert len(said(actions)) == len(before), "each is answered"


# -- how it is started ---------------------------------------------------------------------------------------------


def settings_of(order: Order) -> dict[str, Any]:
    given = [word.partition("=")[2] for word in DRIVER.argv(order) if word.startswith("--settings=")]
    return json.loads(given[0]) if given else {}


@pytest.mark.parametrize("order", [ASKING, ALLOWING, ASKING._replace(read_only=True)])
def test_the_mode_does_not_come_from_the_persons_settings(order: Order) -> None:
    assert "--permission-mode=default" in DRIVER.argv(order)
    settings = settings_of(order)
    assert settings["disableAutoMode"] == settings["permissions"]["disableBypassPermissionsMode"] == "disable"


def test_with_the_persons_own_settings_nothing_of_theirs_is_set() -> None:
    assert not [word for word in DRIVER.argv(OWN) if word.startswith(("--permission-mode", "--settings"))]
    rules = [*DENY_BASH, *OWN.permissions]
    assert settings_of(OWN._replace(permissions=rules)) == {"permissions": {"deny": ["Bash"]}}


@pytest.mark.parametrize(
    ("tools", "denied"),
    [
        (["Bash"], ["Bash"]),
        (["run_shell_command", "webfetch"], ["Bash", "WebFetch"]),
        (["mcp__w__*", "mcp__w__write"], ["mcp__w__*", "mcp__w__write"]),
        (["Edit", "*", "Web*", "Bash(rm *)"], []),
    ],
)
def test_denials_of_whole_tools_are_given_to_the_program_as_well(tools: list[str], denied: list[str]) -> None:
    rules = [{"tool": tool, "pattern": "*", "answer": "deny"} for tool in tools]
    assert settings_of(ASKING._replace(permissions=rules))["permissions"].get("deny", []) == denied
    assert settings_of(ASKING._replace(denied_above=[rules]))["permissions"].get("deny", []) == denied


def test_a_denial_after_an_exception_is_ours_alone() -> None:
    rules = [{"tool": "Bash", "pattern": "ls", "answer": "allow"}, *DENY_BASH]
    assert "deny" not in settings_of(ASKING._replace(permissions=rules))["permissions"]


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
