"""At stake: whatever an ACP program says, in whatever order, its end is told truthfully and nothing of it breaks us."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentctl.domain.activity.fold import ActivityFold
from agentctl.domain.activity.row import Phase, RowType, encode_row
from agentctl.domain.states import Reason
from agentctl.drivers.acp.conversation import AcpDialogue
from agentctl.drivers.acp.program import AcpProgram, Manner
from agentctl.drivers.dialogue import (
    Action,
    Ask,
    Expect,
    Finished,
    HangUp,
    Note,
    Progress,
    Retrying,
    Say,
    SessionIs,
    UsageReported,
    Withdraw,
)
from agentctl.drivers.order import Order
from agentctl.worker_programs.agent_host.host_questions import decided_by
from tests.actions import Recorded

SESSION = "s-1"
PLAIN = AcpProgram(program="agent")


def order(row: AcpProgram = PLAIN, **more: Any) -> Order:
    given_ = {"driver": "agent", "program": "agent", "agent": "general", "prompt": "do it", "cwd": "/project"}
    return Order(**{**given_, "acp": {**row.to_json(), "instructions": "prompt"}, **more})


class Talk(Recorded):
    """A dialogue, with what it did."""

    def __init__(self, given_order: Order | None = None) -> None:
        super().__init__()
        self.dialogue = AcpDialogue(given_order or order())
        self.said: list[dict[str, Any]] = []
        self.do(self.dialogue.begin())

    def do(self, actions: Iterable[Action]) -> list[Action]:
        new = list(actions)
        self.actions += new
        self.said += [json.loads(action.data) for action in new if isinstance(action, Say)]
        return new

    def hear(self, message: Any) -> list[Action]:
        return self.do(self.dialogue.received(json.dumps(message).encode()))

    def result(self, **result: Any) -> list[Action]:
        """Answer the newest request of the dialogue."""
        request = next(message for message in reversed(self.said) if "method" in message and "id" in message)
        return self.hear({"jsonrpc": "2.0", "id": request["id"], "result": result})

    def opened(self, capabilities: dict[str, Any] | None = None, **session: Any) -> Talk:
        """Answer `initialize` and the request that opens the session."""
        self.result(protocolVersion=1, agentCapabilities=capabilities or {})
        self.result(**{"sessionId": SESSION, **session})
        return self

    def update(self, what: str, session: str = SESSION, **fields: Any) -> list[Action]:
        params = {"sessionId": session, "update": {"sessionUpdate": what, **fields}}
        return self.hear({"jsonrpc": "2.0", "method": "session/update", "params": params})

    def says(self, text: str, **more: Any) -> list[Action]:
        return self.update("agent_message_chunk", content={"type": "text", "text": text}, **more)

    def asks(
        self, request_id: Any = 7, kinds: Sequence[str] = ("allow_once", "reject_once"), **call: Any
    ) -> list[Action]:
        options = [{"optionId": f"o-{number}", "name": kind, "kind": kind} for number, kind in enumerate(kinds)]
        params = {"sessionId": SESSION, "toolCall": {"toolCallId": "c", **call}, "options": options}
        return self.hear({"id": request_id, "method": "session/request_permission", "params": params})

    @property
    def methods(self) -> list[str]:
        return [message["method"] for message in self.said if "method" in message]


# -- opening ---------------------------------------------------------------------------------------------------------


def test_the_role_goes_before_the_first_prompt_and_only_there() -> None:
    talk = Talk(order(instructions="You are one.")).opened()
    assert [block["text"] for block in talk.said[-1]["params"]["prompt"]] == ["You are one.", "do it"]
    talk.do(talk.dialogue.told("more", interrupt=False))
    talk.result(stopReason="end_turn")
    assert [block["text"] for block in talk.said[-1]["params"]["prompt"]] == ["more"]


def test_the_role_may_go_beside_the_session_with_what_a_manner_adds() -> None:
    manner = Manner(session_meta={"x": {"tools": ["Read"]}})
    row = AcpProgram(program="agent", session_meta={"x": {"sources": []}}, read_only=manner)
    given_ = order(instructions="You are one.", read_only=True)
    talk = Talk(given_._replace(acp={**row.to_json(), "instructions": "systemPrompt"}))
    talk.result(protocolVersion=1)
    assert talk.said[-1]["params"]["_meta"] == {
        "x": {"sources": [], "tools": ["Read"]}, "systemPrompt": {"append": "You are one."}
    }  # fmt: skip


HTTP = {"type": "http", "url": "https://example.org/mcp"}
SERVERS = {"web": HTTP, "own": {"command": "x", "args": ["y"], "env": {"A": "b"}}}


def test_a_server_over_http_is_given_to_a_program_that_takes_such_and_otherwise_left_out_with_a_word() -> None:
    own = {"name": "own", "command": "x", "args": ["y"], "env": [{"name": "A", "value": "b"}]}
    over_http = {"type": "http", "name": "web", "url": HTTP["url"], "headers": []}
    for capabilities, given_ in ({"mcpCapabilities": {"http": True}}, [over_http, own]), ({}, [own]):
        talk = Talk(order(mcp_servers=SERVERS))
        talk.result(protocolVersion=1, agentCapabilities=capabilities)
        assert talk.said[-1]["params"]["mcpServers"] == given_
        assert ["the MCP server web was left out" in str(row.text) for row in talk.rows] == [True] * (not capabilities)


def test_servers_that_stand_in_the_settings_of_a_program_are_not_given_to_it_again() -> None:
    talk = Talk(order(mcp_servers=SERVERS, home={"variable": "X_HOME", "own": "/w/home"}))
    talk.result(protocolVersion=1, agentCapabilities={"mcpCapabilities": {"http": True}})
    assert talk.said[-1]["params"]["mcpServers"] == []


def test_servers_as_settings_of_their_program_are_reached_as_the_order_says() -> None:
    talk = Talk(order(PLAIN._replace(servers_in="x.servers"), mcp_servers=SERVERS))
    talk.result(protocolVersion=1)
    assert talk.said[-1]["params"]["mcpServers"] == []
    assert talk.said[-1]["params"]["_meta"]["x"]["servers"] == {
        "web": {**HTTP, "alwaysLoad": True},
        "own": {"type": "stdio", "command": "x", "args": ["y"], "env": {"A": "b"}, "alwaysLoad": True},
    }  # fmt: skip


@pytest.mark.parametrize("version", [2, 0, "one", None])
def test_another_version_of_the_protocol_is_an_end(version: Any) -> None:
    talk = Talk()
    talk.result(protocolVersion=version)
    assert talk.outcome.reason is Reason.NOT_STARTED
    assert talk.methods == ["initialize"]


OPTIONS = [
    {
        "id": "m", "name": "Model", "category": "model", "type": "select", "currentValue": "p/small",
        "options": [{"group": "g", "name": "G", "options": [
            {"value": "p/small", "name": "Small"}, {"value": "p/large", "name": "Large"},
        ]}],
    },
    {
        "id": "t", "name": "Effort", "category": "thought_level", "type": "select", "currentValue": "normal",
        "options": [{"value": "minimal", "name": "Minimal"}, {"value": "normal", "name": "Normal"}],
    },
]  # fmt: skip


@pytest.mark.parametrize("wanted", ["p/large", "large", "Large"])
def test_the_model_is_set_by_the_category_of_its_option(wanted: str) -> None:
    talk = Talk(order(model=wanted)).opened(configOptions=OPTIONS)
    assert talk.said[-1]["params"] == {"sessionId": SESSION, "configId": "m", "value": "p/large"}
    talk.result(configOptions=OPTIONS)
    assert talk.methods[-1] == "session/prompt"


def test_a_model_that_is_not_there_is_an_end_that_names_those_that_are() -> None:
    talk = Talk(order(model="huge")).opened(configOptions=OPTIONS)
    assert talk.outcome.reason is Reason.NOT_STARTED
    assert "p/small, p/large" in str(talk.outcome.message)


def test_a_mode_that_is_not_there_names_the_package_that_has_it() -> None:
    """Another package may have a program of the same name."""
    row = AcpProgram(program="codex-acp", install="npm install -g @one/codex-acp", asking=Manner(mode="careful"))
    talk = Talk(order(row)).opened(modes={"currentModeId": "x", "availableModes": [{"id": "x", "name": "X"}]})
    assert talk.outcome.reason is Reason.NOT_STARTED
    assert str(talk.outcome.message).endswith(
        "cannot take the mode careful: it knows x; another package may have a program of that name: "
        "`npm install -g @one/codex-acp` installs the right one"
    )


def test_the_nearest_effort_is_taken_and_one_that_is_not_there_left_out() -> None:
    talk = Talk(order(effort="low")).opened(configOptions=OPTIONS)
    assert talk.said[-1]["params"]["value"] == "minimal"
    talk = Talk(order(effort="high")).opened(configOptions=OPTIONS)
    assert talk.methods[-1] == "session/prompt"
    assert "the effort high was left out" in str(talk.rows[0].text)
    talk = Talk(order(effort="high")).opened()
    assert str(talk.rows[0].text).endswith("it offers no choice of an effort")


def test_modes_and_models_in_the_older_way() -> None:
    row = AcpProgram(program="agent", asking=Manner(mode="ask"))
    modes = {"currentModeId": "auto", "availableModes": [{"id": "auto", "name": "Auto"}, {"id": "ask", "name": "Ask"}]}
    models = {"currentModelId": "a", "availableModels": [{"modelId": "a", "name": "A"}, {"modelId": "b", "name": "B"}]}
    talk = Talk(order(row, model="b")).opened(modes=modes, models=models)
    talk.result()
    talk.result()
    assert talk.methods[-3:] == ["session/set_mode", "session/set_model", "session/prompt"]


def test_what_may_only_read_does_not_begin_without_its_mode() -> None:
    row = AcpProgram(program="agent", read_only=Manner(mode="plan"))
    talk = Talk(order(row, read_only=True)).opened()
    assert talk.outcome.reason is Reason.NOT_STARTED
    assert "mode plan" in str(talk.outcome.message)


@pytest.mark.parametrize(
    ("capabilities", "method"),
    [
        ({"loadSession": True, "sessionCapabilities": {"resume": {}}}, "session/resume"),
        ({"loadSession": True}, "session/load"),
    ],
)
def test_a_session_is_continued_by_the_best_way_there_is(capabilities: dict[str, Any], method: str) -> None:
    talk = Talk(order(resume="old", instructions="You are one."))
    talk.result(protocolVersion=1, agentCapabilities=capabilities)
    assert talk.methods[-1] == method
    talk.update("tool_call", session="old", toolCallId="x", title="old work", status="completed")
    talk.result()
    assert talk.of(SessionIs)[-1].session == "old"
    assert not [row for row in talk.rows if row.type is RowType.TOOL]
    assert [block["text"] for block in talk.said[-1]["params"]["prompt"]] == ["do it"]


@pytest.mark.parametrize(
    ("capabilities", "session"),
    [({}, ""), ({"loadSession": True}, SESSION), ({"sessionCapabilities": {"resume": {}}}, SESSION)],
)
def test_a_session_that_cannot_be_continued_is_none_to_continue(capabilities: dict[str, Any], session: str) -> None:
    talk = Talk(order(PLAIN._replace(usage="turn"))).opened(capabilities)
    talk.result(stopReason="end_turn", usage={"inputTokens": 1, "outputTokens": 1, "totalTokens": 2})
    assert [one.session for one in talk.of(SessionIs)] == [session, session]
    assert talk.outcome.session == SESSION


# -- ends ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        ("end_turn", None), ("max_tokens", Reason.TRUNCATED), ("max_turn_requests", Reason.MAX_TURNS),
        ("refusal", Reason.REFUSED), ("cancelled", Reason.SIGNAL), ("of_next_year", Reason.MODEL_ERROR),
        (None, Reason.MODEL_ERROR),
    ],
)  # fmt: skip
def test_stop_reasons(stop: str | None, reason: Reason | None) -> None:
    talk = Talk().opened()
    talk.says("an answer")
    talk.result(stopReason=stop)
    assert (talk.outcome.reason, talk.outcome.final_message) == (reason, "an answer")


def test_an_agent_that_says_nothing_at_all_is_told_of() -> None:
    talk = Talk().opened()
    talk.result(stopReason="end_turn")
    assert talk.outcome.reason is None
    assert "without a word" in str(talk.outcome.message)


def test_a_turn_without_a_word_does_not_give_the_answer_of_the_turn_before() -> None:
    talk = Talk().opened()
    talk.says("the first answer")
    talk.result(stopReason="end_turn")
    talk.do(talk.dialogue.told("more", interrupt=False))
    talk.result(stopReason="end_turn")
    assert talk.outcome.final_message is None
    assert "without a word" in str(talk.outcome.message)


@pytest.mark.parametrize("stop", ["end_turn", "cancelled"])
def test_a_turn_that_ends_with_a_denial_is_no_success(stop: str) -> None:
    talk = Talk().opened()
    talk.asks(title="rm -rf /", kind="execute")
    talk.do(talk.dialogue.answered("7", "deny"))
    talk.update("tool_call_update", toolCallId="c", status="failed")
    talk.result(stopReason=stop)
    assert talk.outcome.reason is Reason.PERMISSION_DENIED


def test_an_answer_to_a_question_is_no_denial_whatever_its_words_are() -> None:
    talk = Talk().opened()
    talk.says("I ask.")
    schema = {"type": "object", "properties": {"policy": {"type": "string"}}, "required": ["policy"]}
    talk.hear({"id": 7, "method": "elicitation/create", "params": {"message": "Which?", "requestedSchema": schema}})
    talk.do(talk.dialogue.answered(talk.of(Ask)[0].key, "deny by default"))
    talk.result(stopReason="end_turn")
    assert talk.outcome.reason is None


def test_an_agent_that_goes_on_after_a_denial_has_ended_well() -> None:
    talk = Talk().opened()
    talk.asks(title="rm -rf /", kind="execute")
    talk.do(talk.dialogue.answered("7", "deny"))
    talk.says("Then I leave it.")
    talk.result(stopReason="end_turn")
    assert talk.outcome.reason is None


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ({"code": -32000, "message": "Authentication required"}, Reason.AUTH),
        (
            {"code": -32603, "message": "Internal error", "data": {"details": "429 Too many requests"}},
            Reason.RATE_LIMITED,
        ),
        ({"code": -32603, "message": "x", "data": {"error": {"statusCode": 529}}}, Reason.OVERLOADED),
        ({"code": -32603, "message": "x", "data": "Model stream ended without a finish reason."}, Reason.TRUNCATED),
        ({"code": -32603, "message": "x", "data": {"details": "401 No such key."}}, Reason.AUTH),
        ({"code": -32603, "message": "x", "data": '{"error": {"message": "insufficient_quota"}}'}, Reason.BILLING),
        ({"code": -32603, "message": "x", "data": {"message": "prompt is too long"}}, Reason.CONTEXT),
        ({"code": -32603, "message": "Session too large: context exceeds model limit"}, Reason.CONTEXT),
        ({"code": -32603, "message": "Internal error"}, Reason.MODEL_ERROR),
        ("not even an object", Reason.MODEL_ERROR),
    ],
)
def test_errors_of_a_prompt(error: Any, reason: Reason) -> None:
    talk = Talk().opened()
    talk.hear({"id": 3, "error": error})
    assert talk.outcome.reason is reason


def test_a_failure_that_is_reported_as_an_end_is_a_failure() -> None:
    talk = Talk().opened()
    told = {"jetbrains": {"air": {"version": 1, "sessionFailure": {"category": "service", "severity": "warning"}}}}
    talk.update("session_info_update", _meta=told)
    assert [retry.reason for retry in talk.of(Retrying)] == [Reason.MODEL_ERROR]
    notice = {"category": "unknown", "severity": "warning", "title": "Model metadata not found."}
    talk.update("session_info_update", _meta={"jetbrains": {"air": {"sessionFailure": notice}}})
    assert len(talk.of(Retrying)) == 1, "a notice is no retry"
    final = {"jetbrains": {"air": {"sessionFailure": {"category": "limit", "severity": "error", "title": "no more"}}}}
    talk.result(stopReason="end_turn", _meta=final)
    assert (talk.outcome.reason, talk.outcome.message) == (Reason.RATE_LIMITED, "no more")


def test_only_what_nothing_but_a_new_session_helps_is_a_conversation_that_is_too_long() -> None:
    for actions, reason in (["new_session"], Reason.CONTEXT), (["retry", "new_session"], Reason.MODEL_ERROR):
        talk = Talk().opened()
        failure = {"category": "service", "severity": "error", "title": "no", "actions": actions}
        talk.result(stopReason="end_turn", _meta={"air": {"sessionFailure": failure}})
        assert talk.outcome.reason is reason


@pytest.mark.parametrize(
    ("code", "reason"), [(0, Reason.TRUNCATED), (1, Reason.TRUNCATED), (-9, Reason.SIGNAL), (143, Reason.SIGNAL)]
)
def test_an_exit_in_mid_turn(code: int, reason: Reason) -> None:
    talk = Talk().opened()
    talk.says("half an ans")
    assert talk.dialogue.ended(code).reason is reason
    assert Talk().dialogue.ended(code).reason is (Reason.SIGNAL if code in {-9, 143} else Reason.NOT_STARTED)


def test_only_one_that_has_not_greeted_may_not_speak_the_protocol() -> None:
    talk = Talk(order(PLAIN._replace(args=("--stdio",))))
    assert "args of its row: --stdio" in str(talk.of(Expect)[0].outcome.message)
    assert "may not speak ACP" in str(talk.dialogue.ended(0).message)
    assert talk.result(protocolVersion=1)[0] == Progress()
    assert talk.of(Expect)[-1].outcome.message == "agent greeted, and then opened no session within 60 s"
    assert "may not speak ACP" not in str(talk.dialogue.ended(0).message)


def test_an_exit_after_the_end_changes_nothing() -> None:
    talk = Talk().opened()
    talk.result(stopReason="end_turn")
    assert talk.dialogue.ended(1).reason is None


# -- cancels and messages ---------------------------------------------------------------------------------------------


def test_a_cancel_withdraws_what_is_open_then_hangs_up_when_the_turn_has_ended() -> None:
    talk = Talk().opened()
    talk.asks()
    talk.do(talk.dialogue.interrupted())
    assert talk.of(Withdraw)
    assert talk.said[-2]["result"] == {"outcome": {"outcome": "cancelled"}}
    assert talk.methods[-1] == "session/cancel"
    talk.asks(8)
    assert talk.said[-1]["result"]["outcome"] == {"outcome": "selected", "optionId": "o-1"}
    assert not talk.of(HangUp)
    talk.result(stopReason="end_turn")
    assert talk.of(HangUp)
    assert not talk.of(Finished)


def test_a_message_that_interrupts_begins_the_next_turn() -> None:
    talk = Talk().opened()
    talk.do(talk.dialogue.told("stop that", interrupt=True))
    assert talk.methods[-1] == "session/cancel"
    talk.result(stopReason="cancelled")
    assert talk.methods[-1] == "session/prompt"
    talk.says("Stopped.")
    talk.result(stopReason="end_turn")
    assert talk.outcome.reason is None


def test_messages_that_a_program_asks_for_in_mid_turn() -> None:
    talk = Talk().opened()
    talk.do(talk.dialogue.told("more", interrupt=False))
    talk.hear({"id": "d", "method": "craft/drainMidTurnQueue", "params": {}})
    assert talk.said[-1]["result"] == {"messages": ["more"]}
    talk.result(stopReason="end_turn")
    assert talk.of(Finished)


def test_a_message_that_interrupts_is_not_lost_with_the_turn_that_it_ends() -> None:
    talk = Talk().opened()
    talk.do(talk.dialogue.told("stop that", interrupt=True))
    talk.hear({"id": "d", "method": "craft/drainMidTurnQueue", "params": {}})
    assert talk.said[-1]["result"] == {"messages": []}
    talk.asks(8)
    assert not talk.of(Ask), "nobody is asked about a turn that is being cancelled"
    talk.result(stopReason="cancelled")
    assert [block["text"] for block in talk.said[-1]["params"]["prompt"]] == ["stop that"]


def test_calls_that_are_known_only_by_requests_count_as_rounds_and_close_what_was_being_said() -> None:
    talk = Talk(order(max_turns=2)).opened()
    talk.says("I begin.")
    for number in range(3):
        talk.asks(number, toolCallId=f"c{number}", title="touch x", kind="execute")
        assert "I begin." in [row.text for row in talk.rows]
        talk.do(talk.dialogue.answered(str(number), "allow"))
        talk.update("tool_call_update", toolCallId=f"c{number}", status="completed")
    assert talk.dialogue.transcript.rounds == 3
    assert len(talk.of(Ask)) == 2, "the third one is beyond the limit"
    assert "session/cancel" in talk.methods
    talk.result(stopReason="cancelled")
    assert (talk.outcome.reason, talk.outcome.turns_used) == (Reason.MAX_TURNS, 2)


def test_a_turn_that_was_cancelled_for_its_worker_is_not_cancelled_once_more_for_its_limit() -> None:
    talk = Talk(order(max_turns=1)).opened()
    talk.do(talk.dialogue.interrupted())
    for number in range(3):
        talk.update("tool_call", toolCallId=f"c{number}", title="ls", kind="execute", status="completed")
    assert talk.dialogue.transcript.rounds > 1
    assert talk.methods.count("session/cancel") == 1
    assert talk.dialogue.ended(0).reason is not Reason.MAX_TURNS


@pytest.mark.parametrize("refused", [True, False])
def test_a_call_of_which_nothing_is_heard_after_its_denial_does_not_hide_the_rounds_after_it(*, refused: bool) -> None:
    row = AcpProgram(program="agent", read_only=Manner(args=("--plan",)))
    talk = Talk(order(row, read_only=refused)).opened()
    for number in range(3):
        talk.asks(number, toolCallId=f"c{number}", title="touch x", kind="execute")
        talk.do(talk.dialogue.answered(str(number), "deny"))
    assert talk.dialogue.transcript.rounds == 3


def test_the_call_of_a_sub_agent_that_is_known_only_by_a_request_is_no_round_of_the_agent() -> None:
    talk = Talk().opened()
    options = [{"optionId": "o", "name": "yes", "kind": "allow_once"}]
    params = {"sessionId": "child", "toolCall": {"toolCallId": "c", "title": "x"}, "options": options}
    talk.hear({"id": 1, "method": "session/request_permission", "params": params})
    assert (talk.of(Ask)[0].asked_by, talk.dialogue.transcript.rounds) == ("child", 0)
    assert [row.id for row in talk.rows if row.type is RowType.AGENT] == ["child"]


@pytest.mark.parametrize("kind", ["tool_call", "tool_call_update"])
@pytest.mark.parametrize("answer", [None, "deny"])
def test_a_question_names_the_sub_agent_as_soon_as_its_program_does(answer: str | None, kind: str) -> None:
    talk = Talk().opened()
    talk.update("tool_call", toolCallId="t", title="Agent", rawInput={"subagent_type": "general"})
    talk.update("tool_call", toolCallId="c", title="touch x", kind="execute", rawInput={"command": "touch x"})
    talk.asks(title="touch x", kind="execute")
    first = talk.of(Ask)[0]
    if answer is not None:
        talk.do(talk.dialogue.answered(first.key, answer))
    talk.update("tool_call_update", toolCallId="c", status="in_progress")
    assert talk.of(Ask) == [first]
    for _ in range(2):
        talk.update(kind, toolCallId="c", _meta={"claudeCode": {"parentToolUseId": "t"}})
    assert first.asked_by is None
    again = [] if answer else [first._replace(asked_by="t", asked_by_type="general")]
    assert talk.of(Ask)[1:] == again
    assert talk.of(Withdraw) == [Withdraw(first.key) for _ in again]


def test_a_request_under_the_id_of_a_call_that_is_over_shows_nothing_of_that_call_later_either() -> None:
    talk = Talk().opened()
    below: dict[str, Any] = {"_meta": {"claudeCode": {"parentToolUseId": "t"}}}
    talk.update("tool_call", toolCallId="c", title="ls", kind="read", status="completed", **below)
    talk.asks(title="rm x", kind="execute", rawInput={"command": "rm x"})
    talk.update("tool_call_update", toolCallId="c", status="in_progress", **below)
    assert [ask.arguments for ask in talk.of(Ask)] == [{"command": "rm x"}]


def test_nothing_ends_the_deadline_of_a_cancel_but_the_end_of_its_turn() -> None:
    talk = Talk(order(max_turns=1)).opened()
    for number in range(2):
        talk.update("tool_call", toolCallId=f"c{number}", title="x", status="completed")
    assert talk.of(Expect)[-1].outcome.reason is Reason.MAX_TURNS
    retry = {"air": {"sessionFailure": {"category": "service", "severity": "warning"}}}
    assert not {type(one) for one in talk.update("session_info_update", _meta=retry)} & {Retrying, Progress}
    assert Progress() not in talk.says("I go on.")
    assert Progress() in talk.result(stopReason="cancelled")


def test_what_a_continued_session_tells_once_it_is_open_is_no_history() -> None:
    talk = Talk(order(resume=SESSION, model="b"))
    talk.result(protocolVersion=1, agentCapabilities={"loadSession": True})
    talk.update("tool_call", toolCallId="then", title="x")
    talk.result(models={"currentModelId": "a", "availableModels": [{"modelId": "b", "name": "B"}]})
    talk.update("tool_call", toolCallId="now", title="x")
    assert [row.id for row in talk.rows if row.type is RowType.TOOL] == ["now"]
    assert "replayed: 1 updates" in str([row.text for row in talk.rows])
    talk.result()
    assert talk.methods[-1] == "session/prompt"


def test_between_two_turns_a_cancel_hangs_up_at_once_and_a_failure_is_none_of_a_turn() -> None:
    talk = Talk().opened()
    talk.result(stopReason="end_turn")
    failure = {"air": {"sessionFailure": {"category": "service", "severity": "warning"}}}
    talk.update("session_info_update", _meta=failure)
    assert not talk.of(Retrying)
    talk.do(talk.dialogue.interrupted())
    assert talk.of(HangUp)
    assert "session/cancel" not in talk.methods


@pytest.mark.parametrize("is_open", [False, True])
def test_a_program_is_busy_with_another_start_only_before_it_has_begun(*, is_open: bool) -> None:
    talk = Talk(order(PLAIN._replace(busy=("locked",))))
    if is_open:
        talk.opened()
    talk.dialogue.complained(b"database is locked")
    assert talk.dialogue.ended(1).is_busy is not is_open


# -- questions --------------------------------------------------------------------------------------------------------


def test_options_are_named_by_their_kind_and_chosen_exactly() -> None:
    talk = Talk().opened()
    talk.asks(kinds=("reject_once", "allow_always", "allow_somehow", "allow_once", "allow_once"), kind="execute")
    (ask,) = talk.of(Ask)
    assert [name for name, _ in ask.options] == ["deny", "allow_always", "allow", "allow-2"]
    assert (ask.allow, ask.deny) == ("allow", "deny")
    talk.do(talk.dialogue.answered(ask.key, "allow"))
    assert talk.said[-1]["result"]["outcome"]["optionId"] == "o-3"


def test_a_rule_never_allows_for_good() -> None:
    talk = Talk().opened()
    talk.asks(kinds=("allow_always",), kind="execute")
    (ask,) = talk.of(Ask)
    assert (ask.allow, ask.deny) == ("", "deny")
    for answer, decided in ("allow", None), ("ask", None), ("deny", "deny"):
        rules = [{"tool": "*", "pattern": "*", "answer": answer}]
        found = decided_by(order(permissions=rules), ask)
        assert (found and found.answer) == decided, "where nothing allows it just once, a person chooses"
    talk.do(talk.dialogue.answered(ask.key, "deny"))
    assert talk.said[-1]["result"] == {"outcome": {"outcome": "cancelled"}}


def test_the_tool_of_a_server_is_named_as_rules_name_it() -> None:
    servers = {"agentctl": {"command": "x"}}
    for fields in (
        {"title": "agentctl_spawn_agent", "kind": "other"},
        {"title": "mcp__agentctl__spawn_agent"},
        {"title": "x", "kind": "execute", "rawInput": {"server": "agentctl", "tool": "spawn_agent"},
         "_meta": {"is_mcp_tool_call": True}},
        {"title": "x", "kind": "read", "_meta": {"toolName": "mcp__agentctl__spawn_agent"}},
        {"title": "x", "kind": "other", "rawInput": {"server": "agentctl", "tool": "wait"},
         "_meta": {"is_mcp_tool_call": True, "claudeCode": {"toolName": "mcp__agentctl__spawn_agent"}}},
    ):  # fmt: skip
        talk = Talk(order(mcp_servers=servers)).opened()
        talk.asks(**fields)
        assert talk.of(Ask)[0].tool == "mcp__agentctl__spawn_agent"
    talk = Talk(order(mcp_servers=servers)).opened()
    talk.asks(title="agentctl_spawn_agent", kind="execute")
    assert talk.of(Ask)[0].tool == "Bash"


@pytest.mark.parametrize("title", ["Read", "READ ", "Bash", "exec_command", "mcp__mail__send", "Write\nsomething"])
@pytest.mark.parametrize("kind", ["other", None])
def test_a_title_never_makes_a_call_another_tool_that_a_rule_allows(title: str, kind: str | None) -> None:
    name = title.partition("\n")[0].strip()
    for answers, decided in (
        ({name: "allow"}, None), ({name: "deny"}, "deny"), ({name: "deny", "*": "allow"}, "deny"),
        ({name: "ask", "*": "allow"}, None), ({name: "allow", "*": "allow"}, "allow"),
    ):  # fmt: skip
        rules = [{"tool": tool, "pattern": "*", "answer": answer} for tool, answer in answers.items()]
        talk = Talk(order(permissions=rules)).opened()
        talk.asks(title=title, kind=kind)
        (ask,) = talk.of(Ask)
        assert title in ask.question
        found = decided_by(talk.dialogue.order, ask)
        assert (found and found.answer) == decided


def test_what_a_command_touches_is_shown_and_not_compared_with_rules() -> None:
    for raw, key in ({"command": "touch x"}, "touches"), ({"content": "x"}, "paths"):
        talk = Talk().opened()
        talk.asks(title="x", kind="execute", rawInput=raw, locations=[{"path": "/w/x"}])
        assert talk.of(Ask)[0].arguments == {**raw, key: ["/w/x"]}


def test_a_form_becomes_questions_and_their_answers_its_content() -> None:
    choices = [{"const": "r", "title": "red"}, {"const": "b", "title": "blue"}]
    properties = {
        "colour": {"type": "string", "title": "Colour", "oneOf": choices}, "colour_custom": {"type": "string"},
        "many": {"type": "array", "items": {"anyOf": choices}}, "number": {"type": "integer"},
        "sure": {"type": "boolean"}, "free": {"type": "string"},
    }  # fmt: skip
    talk = Talk().opened()
    schema = {"type": "object", "properties": properties, "required": ["colour", "number", "sure", "many", "free"]}
    params = {"mode": "form", "sessionId": SESSION, "message": "Which?", "requestedSchema": schema}
    talk.hear({"id": "e", "method": "elicitation/create", "params": params})
    keys = [ask.key for ask in talk.of(Ask)]
    for key, answer in zip(keys, ["green", "r,b", "5", "yes", "a, b"], strict=True):
        talk.do(talk.dialogue.answered(key, answer))
    assert talk.said[-1]["result"] == {
        "action": "accept",
        "content": {"colour_custom": "green", "many": ["r", "b"], "number": 5, "sure": True, "free": "a, b"},
    }


def test_questions_in_a_request_for_permission_are_answered_beside_it() -> None:
    asked = [{"question": "Which?", "options": [{"label": "red"}, {"label": "blue"}]}]
    talk = Talk().opened()
    talk.asks(_meta={"qwenQuestions": asked})
    (ask,) = talk.of(Ask)
    assert (ask.tool, [name for name, _ in ask.options]) == (None, ["red", "blue"])
    talk.do(talk.dialogue.answered(ask.key, "blue"))
    assert talk.said[-1]["result"] == {"outcome": {"outcome": "selected", "optionId": "o-0"}, "answers": {"0": "blue"}}


def test_who_may_only_read_is_denied_what_changes_anything() -> None:
    row = AcpProgram(program="agent", read_only=Manner(args=("--plan",)))
    talk = Talk(order(row, read_only=True)).opened()
    talk.asks(kind="execute", title="touch x")
    assert not talk.of(Ask)
    assert talk.said[-1]["result"]["outcome"]["optionId"] == "o-1"


def test_windows_beside_a_message() -> None:
    info = {"status": "allowed", "resetsAt": 1788625200, "rateLimitType": "five_hour"}
    talk = Talk().opened()
    talk.says("x", _meta={"_claude/rateLimit": info})
    assert talk.of(UsageReported)[0].windows[0].name == "five_hour"


@pytest.mark.parametrize("meta", [{"parentToolCallId": "t"}, {"claudeCode": {"parentToolUseId": "t"}}])
def test_the_words_of_a_sub_agent_are_not_the_agents(meta: dict[str, Any]) -> None:
    talk = Talk().opened()
    talk.says("I start a sub-agent.")
    talk.update("tool_call", toolCallId="t", title="Agent", rawInput={"subagent_type": "general"})
    talk.update("agent_message_chunk", content={"type": "text", "text": "I am the sub-agent."}, _meta=meta)
    talk.update("tool_call_update", toolCallId="t", status="completed")
    talk.says("Done.")
    talk.result(stopReason="end_turn")
    assert talk.outcome.final_message == "Done."
    assert [row.parent for row in (note.row for note in talk.of(Note)) if row.text == "I am the sub-agent."] == ["t"]


@pytest.mark.parametrize(("stop", "status"), [("end_turn", "completed"), ("max_tokens", "cancelled")])
def test_a_sub_agent_with_a_session_of_its_own_ends_once_with_the_turn(stop: str, status: str) -> None:
    talk = Talk().opened()
    for _ in range(2):
        talk.says("I am the sub-agent.", session="child")
        talk.result(stopReason=stop)
        talk.do(talk.dialogue.told("more", interrupt=False))
    rows = [row for row in talk.rows if row.id == "child"]
    assert [(row.phase, row.status) for row in rows] == [(Phase.START, "running"), (Phase.END, status)]
    said = [number for number, row in enumerate(talk.rows) if row.parent == "child"]
    assert said[0] < talk.rows.index(rows[1])


def test_arguments_of_many_megabytes_are_in_no_row_and_whole_where_a_rule_looks() -> None:
    talk = Talk().opened()
    command = "x" * 3_000_000
    talk.update("tool_call", toolCallId="c", title="x", kind="execute", rawInput={"command": command})
    talk.asks(title="x", kind="execute", rawInput={"command": command})
    assert all(len(encode_row(row, "2026-11-26T12:00:00.000Z")) < 20_000 for row in talk.rows)
    assert talk.of(Ask)[0].arguments == {"command": command}


# -- properties -------------------------------------------------------------------------------------------------------

TEXTS = st.text(alphabet="ab \n", min_size=1, max_size=8)


@st.composite
def threads(draw: st.DrawFn) -> list[list[dict[str, Any]]]:
    """Updates about several things: of each thing in their order."""
    found: list[list[dict[str, Any]]] = []
    for number in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            pieces = draw(st.lists(TEXTS, min_size=1, max_size=4))
            said = [{"messageId": f"m{number}", "content": {"type": "text", "text": one}} for one in pieces]
            found.append([{"sessionUpdate": "agent_message_chunk", **one} for one in said])
            continue
        call: dict[str, Any] = {"toolCallId": f"c{number}", "title": f"step {number}", "kind": "execute"}
        steps = [{"sessionUpdate": "tool_call", **call, "status": "pending", "rawInput": {"command": "x"}}]
        if draw(st.booleans()):
            steps.append({"sessionUpdate": "tool_call_update", "toolCallId": f"c{number}", "status": "in_progress"})
        if draw(st.booleans()):
            status = draw(st.sampled_from(["completed", "failed"]))
            steps.append({"sessionUpdate": "tool_call_update", "toolCallId": f"c{number}", "status": status})
        found.append(steps)
    return found


@given(st.data(), threads())
@settings(max_examples=60, deadline=None)
def test_any_interleaving_of_updates_folds_to_the_same_activity(data: st.DataObject, given_: list[list[Any]]) -> None:
    whose = [number for number, updates in enumerate(given_) for _ in updates]
    one, other = (folded(given_, data.draw(st.permutations(whose))) for _ in range(2))
    assert one == other


def folded(threads_: list[list[Any]], whose: Sequence[int]) -> dict[str, Any]:
    """Return what the activity shows after the updates came in one of their orders."""
    left = [list(updates) for updates in threads_]
    talk = Talk().opened()
    for number in whose:
        params = {"sessionId": SESSION, "update": left[number].pop(0)}
        talk.hear({"method": "session/update", "params": params})
    talk.result(stopReason="end_turn")
    fold = ActivityFold(keep=100)
    fold.feed(b"".join(encode_row(row, "2026-11-26T12:00:00.000Z") for row in talk.rows))
    return {item.id.decode(): (item.kind, item.parent, bool(item.ended), item.fields()) for item in fold.items()}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
KEYS = (
    "sessionId", "update", "sessionUpdate", "toolCallId", "title", "kind", "status", "content", "rawInput", "_meta",
    "options", "toolCall", "requestedSchema", "mode", "message", "stopReason", "usage", "configOptions", "modes",
)  # fmt: skip
METHODS = (
    "session/update", "session/request_permission", "elicitation/create", "$/cancel_request", "fs/read_text_file", "x",
    "craft/drainMidTurnQueue",
)  # fmt: skip
KINDS = ("agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan", "usage_update", "x")
VALUES = JSON | st.sampled_from([*KINDS, SESSION, "end_turn", "pending", "completed", "execute", "form"])
OBJECTS = st.recursive(
    st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6),
    lambda inner: st.dictionaries(st.sampled_from(KEYS), inner | VALUES, max_size=5),
    max_leaves=8,
)
MESSAGES = st.one_of(
    st.builds(lambda method, params: {"method": method, "params": params}, st.sampled_from(METHODS), OBJECTS),
    st.builds(
        lambda method, params, name: {"method": method, "params": params, "id": name},
        st.sampled_from(METHODS), OBJECTS, st.integers() | st.text(max_size=3) | st.none(),
    ),
    st.builds(lambda number, result: {"id": number, "result": result}, st.integers(0, 6), OBJECTS | JSON),
    st.builds(lambda number, error: {"id": number, "error": error}, st.integers(0, 6), OBJECTS | JSON),
    JSON,
)  # fmt: skip


@given(st.lists(MESSAGES, max_size=12), st.booleans(), st.integers(-20, 200))
@settings(max_examples=150, deadline=None)
def test_nothing_that_a_program_sends_breaks_it(messages: list[Any], is_open: bool, code: int) -> None:
    talk = Talk(order(max_turns=2, model="m"))
    if is_open:
        talk.opened()
    for message in messages:
        talk.hear(message)
        for ask in talk.of(Ask)[-1:]:
            talk.do(talk.dialogue.answered(ask.key, ask.options[0][0] if ask.options else "x"))
    talk.do(talk.dialogue.interrupted())
    assert talk.dialogue.ended(code) is not None
    for row in talk.rows:
        encode_row(row, "2026-11-26T12:00:00.000Z")


@given(st.binary(max_size=200))
@settings(max_examples=100, deadline=None)
def test_no_line_breaks_it(line: bytes) -> None:
    talk = Talk().opened()
    talk.do(talk.dialogue.received(line))
    talk.do(talk.dialogue.complained(line))


_OUTPUT = '{"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed", "rawOutput": NESTED}'


@pytest.mark.parametrize("depth", [50, 600, 950, 990, 5000])
@pytest.mark.parametrize(
    "line",
    [
        '{"id": NESTED, "method": "x"}',
        '{"id": NESTED, "method": "session/request_permission", "params": {"toolCall": {"toolCallId": "c"}}}',
        '{"id": 1, "method": "session/request_permission", "params": {"toolCall": NESTED}}',
        '{"method": "$/cancel_request", "params": {"requestId": NESTED}}',
        '{"method": "session/update", "params": {"update": OUTPUT}}',
        '{"id": 3, "result": {"stopReason": "end_turn", "_meta": NESTED}}',
        '{"id": 3, "error": {"data": NESTED}}',
    ],
)
def test_what_is_nested_deeply_does_not_break_it(line: str, depth: int) -> None:
    for nested in ("[" * depth + "]" * depth, '{"output":' * depth + "1" + "}" * depth):
        talk = Talk().opened()
        talk.do(talk.dialogue.received(line.replace("OUTPUT", _OUTPUT).replace("NESTED", nested).encode()))
        for row in talk.rows:
            encode_row(row, "2026-11-26T12:00:00.000Z")
        talk.result(stopReason="end_turn")
        assert talk.outcome.reason is None or "error" in line


def test_a_second_request_under_an_open_id_does_not_change_what_is_answered() -> None:
    talk = Talk().opened()
    talk.asks(7, title="harmless", rawInput={"command": "ls"})
    assert talk.asks(7, ["allow_always", "allow_once"], title="other", rawInput={"command": "rm -rf ."}) == []
    (ask,) = talk.of(Ask)
    talk.do(talk.dialogue.answered(ask.key, "allow"))
    assert talk.said[-1] == {
        "jsonrpc": "2.0",
        "id": 7,
        "result": {"outcome": {"outcome": "selected", "optionId": "o-0"}},
    }


def test_a_request_under_the_id_of_a_call_that_has_ended_shows_nothing_of_that_call() -> None:
    talk = Talk().opened()
    talk.update("tool_call", toolCallId="c", title="list", kind="read", rawInput={"path": "a.txt"})
    talk.update("tool_call_update", toolCallId="c", status="completed")
    talk.asks(8, title="Run it", kind="execute", rawInput={"command": "rm -rf ."})
    (ask,) = talk.of(Ask)
    assert (ask.tool, ask.arguments) == ("Bash", {"command": "rm -rf ."})


def test_requests_without_end_are_refused_from_the_hundredth_on() -> None:
    talk = Talk().opened()
    for number in range(300):
        talk.asks(number, title="x", rawInput={"command": "ls"})
    assert len(talk.of(Ask)) == 100
    assert len([message for message in talk.said if "error" in message]) == 200


def test_a_message_in_very_many_pieces_and_methods_without_end_take_no_time_and_room() -> None:
    talk = Talk().opened()
    begun = time.process_time()
    for number in range(100_000):
        talk.actions.clear()
        talk.says("ab" * 20)
        talk.hear({"method": f"x{number}"})
    assert time.process_time() - begun < 60
    talk.result(stopReason="end_turn")
    assert talk.outcome.final_message == "ab" * 2_000_000
    assert len(talk.dialogue.transcript.unknown) <= 101


def test_what_nobody_would_read_is_not_asked() -> None:
    talk = Talk().opened()
    talk.asks(1, ["allow_once"] * 5000 + ["reject_once"], title="x", rawInput={"command": "ls"})
    options = [{"optionId": "o", "name": "n" * 10_000_000, "kind": "allow_once"}]
    params = {"sessionId": SESSION, "toolCall": {"toolCallId": "c", "title": "t" * 10_000_000}, "options": options}
    talk.hear({"id": 2, "method": "session/request_permission", "params": params})
    schema = {"type": "object", "properties": {"a": {"type": "string", "enum": [f"v{n}" for n in range(5000)]}}}
    talk.hear(
        {"id": 3, "method": "elicitation/create", "params": {"message": "m" * 10_000_000, "requestedSchema": schema}}
    )
    for ask in talk.of(Ask):
        assert 1 < len(ask.options) <= 52
        assert len(str((ask.question, ask.options))) < 10_000
    schema = {"type": "object", "properties": {f"f{n}": {"type": "string"} for n in range(5000)}}
    talk.hear({"id": 4, "method": "elicitation/create", "params": {"message": "m", "requestedSchema": schema}})
    assert talk.said[-1]["error"]
    assert len(talk.of(Ask)) == 3


@pytest.mark.parametrize("is_cost_first", [True, False])
@pytest.mark.parametrize("kind", ["session", "turn"])
def test_of_a_continued_session_without_a_record_only_what_comes_from_now_on_counts(
    kind: str, *, is_cost_first: bool
) -> None:
    talk = Talk(order(PLAIN._replace(usage=kind, reports_cost=True), resume="old"))
    talk.result(protocolVersion=1, agentCapabilities={"loadSession": True})
    talk.result()

    def cost(amount: float) -> None:
        talk.update("usage_update", used=1, size=1, cost={"amount": amount, "currency": "USD"})

    def tokens(count: int) -> None:
        usage = {"inputTokens": count, "outputTokens": 0, "totalTokens": count}
        talk.result(stopReason="end_turn", usage=usage)

    if is_cost_first:
        cost(50)
    tokens(1_000_000 if kind == "session" else 10)
    talk.do(talk.dialogue.told("more", interrupt=False))
    cost(50 if not is_cost_first else 51)
    tokens(1_000_005 if kind == "session" else 5)
    assert talk.outcome.usage["input"] == (5 if kind == "session" else 15)
    # What the first turn has cost is in the first sum that was told, and cannot be told apart in it.
    assert talk.outcome.cost_usd == (1 if is_cost_first else None)


def test_tokens_beyond_all_counting_can_still_be_written() -> None:
    talk = Talk(order(PLAIN._replace(usage="message"))).opened()
    for _ in range(20):
        talk.says("x", _meta={"usage": {"inputTokens": 10**4299, "outputTokens": 10**4299}})
    talk = Talk(order(PLAIN._replace(usage="turn"))).opened()
    for _ in range(20):
        talk.result(stopReason="end_turn", usage={"inputTokens": 10**4299, "outputTokens": 10**4299, "totalTokens": 1})
        talk.do(talk.dialogue.told("more", interrupt=False))
    talk.result(stopReason="end_turn")
    json.dumps(talk.outcome.usage)
    for row in talk.rows:
        encode_row(row, "2026-11-26T12:00:00.000Z")


@pytest.mark.parametrize(
    ("rules", "answer"),
    [
        ([("write_file", "deny"), ("*", "allow")], "deny"),
        ([("Edit", "deny"), ("*", "allow")], "deny"),
        ([("write_file", "allow"), ("*", "deny")], "allow"),
        ([("Edit", "allow"), ("*", "deny")], "allow"),
        ([("Edit", "ask"), ("*", "allow")], None),
    ],
)
def test_a_rule_may_know_a_tool_by_the_programs_own_name_of_it(
    rules: list[tuple[str, str]], answer: str | None
) -> None:
    talk = Talk().opened()
    talk.asks(
        kind="edit", title="Writing to a", rawInput={"file_path": "a", "content": ""}, _meta={"toolName": "write_file"}
    )
    ask = talk.of(Ask)[-1]
    assert ask.tool == "Edit"
    given_ = order(permissions=[{"tool": tool, "pattern": "*", "answer": said} for tool, said in rules])
    decided = decided_by(given_, ask)
    assert (decided and decided.policy["answer"]) == answer
