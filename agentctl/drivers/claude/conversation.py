"""A conversation with Claude Code: stream-json in both directions, on its standard input and output.

It is started with `-p` and keeps its session until its input is closed. Each line that is written or read is
one JSON object. `start.py` has the command line, `asks.py` the requests, `rows.py` the rows of activity, and
`ends.py` the reasons of an end.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agentctl.domain.activity.row import Row, RowType
from agentctl.domain.answers import DENIED, DENIED_BY_RULE
from agentctl.domain.states import Reason
from agentctl.drivers.claude.account import claude_account, claude_windows
from agentctl.drivers.claude.asks import HOOKS, ClaudeRequests
from agentctl.drivers.claude.breaches import Breaches
from agentctl.drivers.claude.ends import ApiError, api_error, api_error_reason, ending_of, ending_without_result
from agentctl.drivers.claude.rows import SYNTHETIC, ClaudeTranscript
from agentctl.drivers.claude.start import (
    HONOURS,
    INSTALL,
    TESTED,
    asks_before_calls,
    claude_argv,
    claude_environ,
    offered_by,
)
from agentctl.drivers.claude.unread import UnreadMessages
from agentctl.drivers.claude.usage import Meter
from agentctl.drivers.complaints import Complaining
from agentctl.drivers.dialogue import (
    Action,
    AgentOutcome,
    Driver,
    Finished,
    HangUp,
    Note,
    Progress,
    Retrying,
    Say,
    SessionIs,
    StopProgram,
    UsageReported,
)
from agentctl.drivers.marks import SHIPPED
from agentctl.drivers.order import Order
from agentctl.drivers.values import bounded_text, line_of, object_in, parse_line, text_in

_TASK_LINES = frozenset(
    {"background_tasks_changed", "task_started", "task_updated", "task_progress", "task_notification"}
)
#: Lines that are ignored: another line says the same, or nobody needs it.
_SILENT = frozenset({"keep_alive", "stream_event", "tool_progress"})
#: Lines that tell in which mode the program is.
_TELL_MODE = frozenset({"init", "status"})
_SILENT_SYSTEM = frozenset(
    {
        "status",
        "permission_denied",
        "hook_started",
        "hook_progress",
        "hook_response",
        "thinking_tokens",
        "model_refusal_no_fallback",
        "turn_duration",
    }
)
_NOTED_SYSTEM = frozenset(
    {"informational", "compact_boundary", "model_fallback", "notification", "local_command_output"}
)
#: The fields of `assistant`, `user` and `result` lines in the version that was tested.
_FIELDS = frozenset(
    """
    aborted agent_id api_error api_error_params api_error_status api_error_type begun_message_ids deferred_tool_use
    duration_api_ms duration_ms error errors fast_mode_disabled_reason fast_mode_state first_content_frame_ms
    first_request_cache_creation_input_tokens first_request_cache_read_input_tokens first_request_input_tokens
    interrupted_by_shutdown isReplay isSynthetic is_api_error_message is_error message modelUsage
    model_usage_since_last_result num_turns origin parent_tool_use_id permission_denials queued_turn_count
    refused_message_id request_id request_sent_wall_ms restored_rewind result result_index runner_exit safety_stops
    session_id startup_failure_reason stop_reason structured_output subagent_stats subagent_type subtype
    task_description terminal_reason thinking_display thinking_duration_ms time_to_request_ms timestamp
    tool_result_meta tool_use_meta tool_use_result total_cost_usd ttft_ms ttft_stream_ms type usage
    user_message_uuid user_message_uuids uuid
    """.split()  # noqa: SIM905 - one name a line would fill a page
)
#: The types of lines whose unknown fields are counted.
_COUNTED = frozenset({"assistant", "user", "result"})


class ClaudeDialogue(Complaining):
    """One run of the program: one session, with a turn for each message."""

    def __init__(self, order: Order) -> None:
        super().__init__()
        self.order = order
        self.transcript = ClaudeTranscript()
        self.asks = ClaudeRequests(self.transcript, offered_by(order))
        self.breaches = Breaches(order, self.asks.seen)
        #: The id of the request that opens the conversation.
        self.opening = ""
        self.meter = Meter(is_fresh=order.resume is None)
        self.session = order.resume or order.session
        self.model = order.model
        self.unread = UnreadMessages()
        self.sent = 0
        self.result: dict[str, Any] | None = None
        self.outcome: AgentOutcome | None = None
        self.error: ApiError | None = None
        self.has_begun = self.is_interrupted = False
        #: Whether this version reports when it is idle.
        self.tells_state = False
        self._handlers: dict[str, Callable[[dict[str, Any]], Iterable[Action]]] = {
            "assistant": self._assistant,
            "user": self._user,
            "system": self._system,
            "result": self._result,
            "command_lifecycle": self._message_moved,
            "control_request": self.asks.requested,
            "control_response": self._responded,
            "control_cancel_request": self.asks.taken_back,
            "rate_limit_event": self._windows,
        }

    # -- input ---------------------------------------------------------------------------------------------------

    def begin(self) -> Sequence[Action]:
        """Initialise the session, then send the prompt."""
        request: dict[str, Any] = {"subtype": "initialize"}
        if self.order.role:
            request["appendSystemPrompt"] = self.order.role
        if self.order.output_schema:
            request["jsonSchema"] = dict(self.order.output_schema)
        if asks_before_calls(self.order):
            request["hooks"] = HOOKS
        self.opening = _new_id()
        known = [SessionIs(self.session, self.model)] if self.session else []
        return [*known, _control(request, self.opening), *self._message(self.order.prompt)]

    def told(self, text: str, *, interrupt: bool) -> Sequence[Action]:
        """Pass on a message: it joins the running turn, or begins one."""
        first = [_control({"subtype": "interrupt"})] if interrupt and self.outcome is None else []
        return [*first, *self._message(text)]

    def _message(self, text: str) -> list[Action]:
        # A random id: the program silently drops a message whose id its session has seen before.
        message_id = _new_id()
        self.unread.sent(message_id)
        self.sent += 1
        self.result = self.outcome = None
        # The program takes text that begins with a slash for one of its own commands: no model sees it (2.1.330).
        said = f" {text}" if text.startswith("/") else text
        message = {"role": "user", "content": [{"type": "text", "text": said}]}
        row = Row(RowType.MESSAGE, f"user-{self.sent}", name="user", text=bounded_text(text))
        return [Note(row), line_action({"type": "user", "uuid": message_id, "message": message})]

    def answered(self, key: str, answer: str, reason: str = "", *, by_rule: bool = False) -> Sequence[Action]:
        """Pass on an answer."""
        denial = f"{DENIED} {reason}" if reason else DENIED_BY_RULE if by_rule else DENIED
        return self.asks.answered(key, answer, denial)

    def interrupted(self) -> Sequence[Action]:
        """Interrupt the turn, if there is one, and close the input, so that the program ends with the turn."""
        self.is_interrupted = True
        return [*self.asks.withdrawn(), _control({"subtype": "interrupt"}), HangUp()]

    # -- output --------------------------------------------------------------------------------------------------

    def received(self, line: bytes) -> Sequence[Action]:
        """Handle a line; lines outside the protocol are counted."""
        if not line.strip():
            return ()
        value = parse_line(line)
        if value is None:
            self.complaints.stray(line)
            self.transcript.unknown["line that is not a JSON object"] += 1
            return ()
        kind = text_in(value.get("type"))
        if kind in _COUNTED:
            self.transcript.unknown.update(f"field {name}" for name in value.keys() - _FIELDS)
        if handler := self._handlers.get(kind):
            return list(handler(value))
        if kind not in _SILENT:
            self.transcript.unknown[f"line {kind}"] += 1
        return ()

    def _assistant(self, line: dict[str, Any]) -> Iterable[Action]:
        is_synthetic = object_in(line.get("message")).get("model") == SYNTHETIC
        if line.get("parent_tool_use_id") is None:
            # The turn goes on, or the end of background work began a new one: the last result was not the final one.
            self.result = self.outcome = None
            self.has_begun = True
            self.error = api_error(line) if is_synthetic else None
        rows = [Note(row) for row in self.transcript.rows(line)]
        return rows if is_synthetic else [Progress(), *rows]

    def _windows(self, line: dict[str, Any]) -> Iterable[Action]:
        windows = claude_windows(line)
        return [UsageReported(windows)] if windows else ()

    def _user(self, line: dict[str, Any]) -> Iterable[Action]:
        if line.get("isReplay") is True:
            return []
        return [*map(Note, self.transcript.rows(line)), *self._stopped_for(self.breaches.unasked_in(line))]

    def _responded(self, line: dict[str, Any]) -> Iterable[Action]:
        """Stop if the program has refused what opened the conversation: our hook and the role are a part of that."""
        response = object_in(line.get("response"))
        if response.get("subtype") != "error" or response.get("request_id") != self.opening:
            return ()
        message = f"the program refused to begin: {text_in(response.get('error'))}"
        return [StopProgram(self._outcome(Reason.NOT_STARTED, bounded_text(message)))]

    def _stopped_for(self, message: str | None) -> Sequence[Action]:
        """Stop a program that does not keep to what was ordered, for this reason, if there is one."""
        if message is None or self.is_interrupted:
            return ()
        reason = Reason.PERMISSION_DENIED if self.has_begun else Reason.NOT_STARTED
        return [StopProgram(self._outcome(reason, message))]

    def _system(self, line: dict[str, Any]) -> Iterable[Action]:
        subtype = text_in(line.get("subtype"))
        if subtype in _TASK_LINES:
            return map(Note, self.transcript.task(line))
        if subtype in _TELL_MODE and (stop := self._stopped_for(self.breaches.looser_mode(line))):
            return stop
        if subtype == "init" and (stop := self._stopped_for(self.breaches.unhooked(line, self.asks))):
            return stop
        if subtype == "init":
            return self._init(line)
        if subtype == "api_retry":
            return self._retry(line)
        if subtype == "session_state_changed":
            self.tells_state = True
            return self._settle() if line.get("state") == "idle" else ()
        if subtype in _NOTED_SYSTEM:
            text = text_in(line.get("content")) or text_in(line.get("message")) or subtype.replace("_", " ")
            return [Note(Row(RowType.NOTE, text_in(line.get("uuid")) or subtype, text=bounded_text(text)))]
        if subtype not in _SILENT_SYSTEM:
            self.transcript.unknown[f"system {subtype}"] += 1
        return ()

    def _init(self, line: dict[str, Any]) -> Iterable[Action]:
        self.has_begun = True
        before = self.session, self.model
        self.session = text_in(line.get("session_id")) or self.session
        self.model = text_in(line.get("model")) or self.model
        if self.session and (self.session, self.model) != before:
            return [SessionIs(self.session, self.model)]
        return ()

    def _retry(self, line: dict[str, Any]) -> Iterable[Action]:
        error = api_error(line)
        reason = api_error_reason(error)
        cause = error.status or next(filter(None, error.words), "no answer")
        message = f"the API failed ({cause}), attempt {line.get('attempt')} of {line.get('max_retries')}"
        note = Note(Row(RowType.NOTE, text_in(line.get("uuid")) or "retry", text=bounded_text(message)))
        if reason is Reason.AUTH:
            message = f"the API refused the key or login ({cause}); see `claude auth status`"
            return [note, StopProgram(self._outcome(reason, message))]
        return [note, Retrying(reason, bounded_text(message))]

    # -- the end -------------------------------------------------------------------------------------------------

    def _message_moved(self, line: dict[str, Any]) -> Iterable[Action]:
        self.unread.moved(text_in(line.get("command_uuid")), line.get("state"))
        return ()

    def _result(self, line: dict[str, Any]) -> Iterable[Action]:
        self.result, self.outcome = line, None
        self.unread.turn_ended()
        spent = self.meter.take(line)
        rows = [*self.transcript.settle(spent.tokens), *self._unknown()]
        ends = [] if self.tells_state or line.get("queued_turn_count") else self._settle()
        return [*map(Note, rows), *ends]

    def _unknown(self) -> Iterable[Row]:
        unknown = self.transcript.unknown
        if unknown:
            text = ", ".join(f"{bounded_text(kind)} ({count})" for kind, count in sorted(unknown.items()))
            yield Row(RowType.NOTE, "unknown", name="unknown", text=bounded_text(text))

    def _settle(self) -> Sequence[Action]:
        """Finish if there is a result, every message has been taken up, and nothing runs in the background."""
        if self.result is None or self.outcome or self.unread or self.transcript.background:
            return ()
        self.outcome = self._conclude(self.result)
        return [Finished(self.outcome)]

    def _conclude(self, result: Mapping[str, Any]) -> AgentOutcome:
        reason, message = ending_of(result, self.error, is_interrupted=self.is_interrupted)
        self.error = None
        structured = result.get("structured_output")
        if reason is None and self.order.output_schema and structured is None:
            reason, message = Reason.SCHEMA, "the final answer is not in the form that was asked for"
        outcome = self._outcome(reason, message)
        text = text_in(result.get("result"))
        if structured is not None:
            return outcome._replace(final_message=json.dumps(structured, ensure_ascii=False))
        if reason is None and not self.transcript.answer.endswith(text):
            # The answer of one of the program's own commands is not a message of the model.
            return outcome._replace(final_message=text)
        return outcome

    def _outcome(self, reason: Reason | None, message: str | None) -> AgentOutcome:
        spent = self.meter.spent
        return AgentOutcome(
            reason=reason,
            message=message,
            final_message=self.transcript.answer or None,
            turns_used=self.transcript.tool_rounds,
            usage=spent.tokens._asdict(),
            cost_usd=spent.cost_usd,
            model=self.model,
            session=self.session,
            touched_files=list(self.transcript.touched_files),
        )

    def ended(self, code: int) -> AgentOutcome:
        """Return the outcome: that of the last result, unless there was more to come."""
        if self.outcome:
            return self.outcome
        if self.result is not None:
            outcome = self._conclude(self.result)
            if outcome.reason or not (self.unread or self.transcript.background):
                return outcome
        reason, message = ending_without_result(code, self.complaints, has_begun=self.has_begun)
        return self._outcome(reason, message)


def line_action(value: Mapping[str, Any]) -> Say:
    """Return the action that writes an object as a line."""
    return Say(line_of(value))


def _control(request: Mapping[str, Any], request_id: str | None = None) -> Say:
    return line_action({"type": "control_request", "request_id": request_id or _new_id(), "request": request})


DRIVER = Driver(
    name="claude",
    program="claude",
    version_argv=("--version",),
    tested=TESTED,
    install=INSTALL,
    honours=HONOURS,
    argv=claude_argv,
    environ=claude_environ,
    dialogue=ClaudeDialogue,
    reports=frozenset({"tokens", "cost"}),
    asks=True,
    account=claude_account,
    marks=SHIPPED["claude"],
    tools="claude",
    by_hand=lambda session: ["claude", "--resume", session],
)


def _new_id() -> str:
    import uuid  # Only once the program has been started: it loads the module `platform`.

    return str(uuid.uuid4())
