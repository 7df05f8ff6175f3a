"""One run of an agent over ACP: it opens a session, sends prompts, and handles what the program says and asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import agentctl
from agentctl.domain.activity.row import Row, RowType
from agentctl.domain.agent.driver_names import ANY_ACP
from agentctl.domain.states import Reason
from agentctl.drivers.acp import asks, settings
from agentctl.drivers.acp.dialogue_state import DialogueHappening, DialoguePhase, DialogueState, dialogue_after
from agentctl.drivers.acp.ends import INTERRUPTED, Decision, auth_hint, ended_early, failed, failure_in, stopped
from agentctl.drivers.acp.modes import Modes
from agentctl.drivers.acp.program import IN_META, IN_PROMPT, joined, program_from
from agentctl.drivers.acp.tools import AcpCall
from agentctl.drivers.acp.transcript import GOES_ON, WORK, AcpTranscript
from agentctl.drivers.acp.usage import AcpUsage, acp_windows
from agentctl.drivers.acp.wire import (
    AGENT_METHODS,
    CLIENT_METHODS,
    PROTOCOL_VERSION,
    InitializeResponse,
    PromptResponse,
    ToolCallUpdate,
    acp_greeting,
    is_over_http,
    read_as_model,
    servers_as_settings,
    session_params,
    text_blocks,
)
from agentctl.drivers.complaints import Complaining
from agentctl.drivers.dialogue import (
    Action,
    AgentOutcome,
    Expect,
    Finished,
    HangUp,
    Note,
    Progress,
    Retrying,
    SessionIs,
    StopProgram,
    UsageReported,
)
from agentctl.drivers.jsonrpc import CANCELLED, Calls, RpcError, notification_of, refuse, reply
from agentctl.drivers.order import Order
from agentctl.drivers.requests import OpenRequests
from agentctl.drivers.values import bounded_text, list_in, object_in, parse_line, text_in
from agentctl.lean import NamedTuple

Actions = list[Action]
#: How long a program may take to end a turn that agentctl has cancelled by itself.
_CANCEL_S = 15.0
#: Nobody answers more questions than these at once.
_MOST_OPEN = 100
#: By these some tell of a mode that their model has entered, beside the protocol's own update or in place of it.
_MODE_NOTICES = frozenset({"qwen/notify/session/mode-update"})
_CANCEL_REQUEST = "$/cancel_request"
#: By this some ask, between two steps of a turn, for messages that came meanwhile.
_DRAIN = "craft/drainMidTurnQueue"
#: The updates that tell of a call: the first, and all later ones.
_OF_CALLS = frozenset({"tool_call", "tool_call_update"})
#: The updates that tell a session's mode.
_OF_MODES = frozenset({"current_mode_update", "config_option_update"})


class _Asked(NamedTuple):
    """A request for permission, and what was known of its call when it was asked."""

    request_id: Any
    session: str
    call: AcpCall
    options: Any
    #: Not all of it was; the sub-agent that makes it, if that was.
    is_cut: bool
    parent: str | None


class AcpDialogue(Complaining):
    """One session with one program, from `initialize` to the end of its last turn."""

    def __init__(self, order: Order) -> None:
        super().__init__()
        self.order = order
        self.row = program_from(order.acp)
        self.calls, self.requests = Calls(), OpenRequests()
        self.transcript = AcpTranscript(order.earlier_attempts, order.mcp_servers.keys())
        self.usage = AcpUsage(order, self.row)
        self.manner = self.row.manner(order)
        self.modes = Modes(order.driver, self.manner, order.stance)
        self.session, self.model = "", order.model
        #: Messages that no prompt has taken up yet.
        self._waiting = [order.prompt]
        is_first = order.resume is None and self.row.instructions == IN_PROMPT
        self._role_text = order.role if is_first else ""
        self._state = DialogueState()
        self._replayed = 0
        #: The newest request about each call, by the call's id.
        self._asked: dict[str, _Asked] = {}
        self._ways_to_log_in: Any = None
        #: The method that continues a session; None where the program has none.
        self._way_to_continue: str | None = None
        #: How the agent ended, once it has.
        self._ending: Decision | None = None
        self._notes = 0

    def _happen(self, happening: DialogueHappening) -> bool:
        """Enter the state that follows; return whether it is another one."""
        before, self._state = self._state, dialogue_after(self._state, happening)
        return self._state != before

    # -- opening ---------------------------------------------------------------------------------------------------

    def begin(self) -> Sequence[Action]:
        """Greet the program."""
        hello = self.calls.call(
            AGENT_METHODS["initialize"], acp_greeting(agentctl.__version__), self._greeted, self._not_opened
        )
        return [hello, self._patience("opened no session", f": {self._doubt}")]

    def _patience(self, what: str, why: str = "") -> Action:
        patience_s = self.order.retry_ceiling_seconds
        late = f"{self.order.driver} {what} within {patience_s:g} s{why}"
        return Expect(patience_s, self._outcome(Reason.NOT_STARTED, late))

    @property
    def _doubt(self) -> str:
        """What may be wrong with a program that does not greet."""
        of = "argv of its definition" if self.order.driver == ANY_ACP else "args of its row"
        given = " ".join(self.row.args) or "none"
        return f"it may not speak ACP, or may need other arguments ({of}: {given})"

    def _greeted(self, result: Mapping[str, Any]) -> Actions:
        greeted = read_as_model(InitializeResponse, result)
        version = result.get("protocolVersion")
        if greeted is None or greeted.protocol_version != PROTOCOL_VERSION:
            spoken = f"version {version!r}"[:40]
            what = f"{self.order.driver} speaks {spoken} of the protocol, but agentctl speaks {PROTOCOL_VERSION}"
            return self._stop(Reason.NOT_STARTED, what)
        self._happen(DialogueHappening.GREETED)
        self._ways_to_log_in = result.get("authMethods")
        self._way_to_continue = _way_to_continue(greeted)
        servers, left_out = self._servers_for(greeted)
        params = session_params(self.order.cwd, servers, self._meta())
        actions: Actions = [Progress(), self._patience("greeted, and then opened no session"), *left_out]
        if self.order.resume is None:
            return [*actions, self.calls.call(AGENT_METHODS["session_new"], params, self._opened, self._not_opened)]
        if self._way_to_continue is None:
            return self._stop(Reason.NOT_STARTED, f"this version of {self.order.driver} cannot continue a session")
        self._happen(DialogueHappening.RESUMED)
        params["sessionId"] = self.session = self.transcript.session = self.order.resume
        return [*actions, self.calls.call(self._way_to_continue, params, self._opened, self._not_opened)]

    def _servers_for(self, greeted: InitializeResponse) -> tuple[Mapping[str, Any], Actions]:
        """Return the MCP servers that the program takes in the protocol's own field, and notes of those it does not.

        It may have them by another way: in the session's `_meta`, or in the settings that it was given.
        """
        if self.row.servers_in or self.order.home:
            return {}, []
        servers, capabilities = self.order.mcp_servers, greeted.agent_capabilities
        if capabilities is not None and capabilities.mcp_capabilities and capabilities.mcp_capabilities.http:
            return servers, []
        over_http = [name for name, server in servers.items() if is_over_http(server)]
        why = f"it is reached over HTTP, and this version of {self.order.driver} takes only commands"
        left_out: Actions = [self._note(f"the MCP server {name} was left out: {why}") for name in over_http]
        return {name: server for name, server in servers.items() if name not in over_http}, left_out

    def _meta(self) -> dict[str, Any]:
        """Return the `_meta` of the request that opens the session, be it a new one or one that is continued."""
        meta = joined(self.row.session_meta, self.manner.session_meta)
        if self.row.servers_in and self.order.mcp_servers:
            inner: dict[str, Any] = servers_as_settings(self.order.mcp_servers)
            for name in reversed(self.row.servers_in.split(".")):
                inner = {name: inner}
            meta = joined(meta, inner)
        if self.order.role and self.row.instructions == IN_META:
            meta = joined(meta, {"systemPrompt": {"append": self.order.role}})
        return meta

    def _opened(self, result: Mapping[str, Any]) -> Actions:
        """Take the session; the id of a continued one may have changed."""
        session = text_in(result.get("sessionId")) or self.session
        if not session:
            return self._stop(Reason.NOT_STARTED, f"{self.order.driver} opened a session without an id")
        self.session = self.transcript.session = session
        self._happen(DialogueHappening.OPENED)
        replayed = [self._note(f"replayed: {self._replayed} updates of the session so far")] if self._replayed else []
        offers, order = settings.Offers(session, result), self.order
        self.model = self.model or offers.current(settings.MODEL) or None
        self.modes.opened(offers)
        wanted = [(settings.MODE, self.manner.mode), (settings.MODEL, order.model), (settings.EFFORT, order.effort)]
        steps = [(category, value) for category, value in wanted if value]
        return [*replayed, self._session_is(), *self._set(steps, result)]

    def _session_is(self, used: Mapping[str, int] | None = None) -> Action:
        """Return the session to continue: none where the program has shown no way to do that."""
        return SessionIs(self.session if self._way_to_continue is not None else "", self.model, used)

    def _set(self, steps: Sequence[tuple[str, str]], offered: Mapping[str, Any]) -> Actions:
        """Set one thing after the other, then begin: which efforts there are depends on the model.

        An effort is a preference; without the model that was asked for, nothing is begun.
        """
        if not steps:
            if (problem := self.modes.problem()) is not None:
                return self._stop(Reason.NOT_STARTED, problem)
            self._happen(DialogueHappening.WAS_SET)
            return [Progress(), *([HangUp()] if self._state.is_interrupted else self._prompt())]
        (category, value), rest = steps[0], steps[1:]

        def could_not(problem: str) -> Actions:
            if category == settings.EFFORT:
                return [self._note(f"the effort {value} was left out: {problem}"), *self._set(rest, offered)]
            other = self._another_package() if category == settings.MODE else ""
            could = f"{self.order.driver} cannot take the {category} {value}: {problem}{other}"
            return self._stop(Reason.NOT_STARTED, could)

        try:
            setting = settings.Offers(self.session, offered).choose(category, value)
        except settings.NotOffered as problem:
            return could_not(str(problem))
        if setting is None:
            return self._set(rest, offered)

        def was_set(result: Mapping[str, Any]) -> Actions:
            if category == settings.MODE:
                self.modes.was_set(setting.value)
            self.modes.told(result)
            return self._set(rest, {**offered, **result})

        return [self.calls.call(setting.method, setting.params, was_set, lambda error: could_not(failed(error)[1]))]

    def _another_package(self) -> str:
        """Return what is said if a mode of the row is not there, as with a program of the same name by others."""
        if not self.row.install:
            return ""
        return f"; another package may have a program of that name: `{self.row.install}` installs the right one"

    def _not_opened(self, error: RpcError) -> Actions:
        reason, message = failed(error)
        reason = Reason.NOT_STARTED if reason is Reason.MODEL_ERROR else reason
        hint = auth_hint(self._ways_to_log_in) if reason is Reason.AUTH else ""
        return self._stop(reason, f"{self.order.driver} could not begin: {message}{hint}")

    # -- prompts ---------------------------------------------------------------------------------------------------

    def told(self, text: str, *, interrupt: bool) -> Sequence[Action]:
        """Send a message with the next prompt; one that interrupts cancels the turn for that."""
        if self._state.is_interrupted:
            return []
        self._waiting.append(text)
        if not self._state.phase.is_turn:
            return self._prompt() if self._state.phase.is_open else []
        if not interrupt:
            return []
        self._happen(DialogueHappening.STEERED)
        return [*self.requests.cancel_all(), self._cancel()]

    def _prompt(self) -> Actions:
        said, self._waiting = self._waiting, []
        texts = [*self._role(), *map(_as_text, said)]
        self._happen(DialogueHappening.PROMPTED)
        self._ending, self.requests.was_denied = None, False
        self.transcript.begin_turn()
        params = {"sessionId": self.session, "prompt": text_blocks(texts)}
        prompt = self.calls.call(AGENT_METHODS["session_prompt"], params, self._answered, self._failed)
        return [*map(Note, self.transcript.told(said)), prompt]

    def _role(self) -> list[str]:
        """Return the role, once, if it goes before the first prompt of a session."""
        text, self._role_text = self._role_text, ""
        return [text] if text else []

    def _cancel(self) -> Action:
        return notification_of(AGENT_METHODS["session_cancel"], {"sessionId": self.session})

    def _answered(self, result: Mapping[str, Any]) -> Actions:
        """Handle the end of a turn."""
        response = read_as_model(PromptResponse, result)
        stop = response.stop_reason if response is not None else text_in(result.get("stopReason"))
        ending = stopped(stop, was_denied=self.requests.was_denied, is_silent=not self.transcript.answer)
        if (failure := failure_in(object_in(result.get("_meta")))) is not None and failure.is_final:
            ending = failure.reason, failure.message
        actions: Actions = [Note(row) for row in self.usage.of_turn(response)]
        if self.usage.used is not None:
            actions.append(self._session_is(self.usage.used))
        return [*actions, *self._turn_ended(ending)]

    def _failed(self, error: RpcError) -> Actions:
        reason, message = failed(error)
        hint = auth_hint(self._ways_to_log_in) if reason is Reason.AUTH else ""
        return self._turn_ended((reason, f"{message}{hint}"))

    def _turn_ended(self, ending: Decision) -> Actions:
        turn = self._state
        self._happen(DialogueHappening.TURN_ENDED)
        rows = map(Note, self.transcript.end_turn(is_cancelled=turn.is_cancelled or ending[0] is not None))
        actions: Actions = [*self.requests.cancel_all(), *rows, Progress()]
        if turn.is_interrupted:
            self._ending = INTERRUPTED
            return [*actions, HangUp()]
        if turn.has_passed_limit:
            ending = self._limit_passed()
        elif self._waiting and (ending[0] is None or turn.is_cancelled or self.requests.was_denied):
            return [*actions, *self._prompt()]
        self._ending = ending
        return [*actions, *self._unknown_note(), Finished(self._outcome(*ending))]

    # -- answers and cancels ---------------------------------------------------------------------------------------

    def answered(self, key: str, answer: str, reason: str = "", *, by_rule: bool = False) -> Sequence[Action]:
        """Pass on an answer; the reason for a denial goes as a message, since the protocol has no field for it."""
        actions = self.requests.answered(key, answer)
        return [*actions, *self.told(f"Denied by the user: {reason}", interrupt=False)] if reason else actions

    def interrupted(self) -> Sequence[Action]:
        """Cancel the turn, and what the program still asks with it."""
        if not self._happen(DialogueHappening.INTERRUPTED):
            return []
        self._ending = INTERRUPTED
        return [*self.requests.cancel_all(), self._cancel() if self._state.phase.is_turn else HangUp()]

    # -- the program's output --------------------------------------------------------------------------------------

    def received(self, line: bytes) -> Sequence[Action]:
        """Handle a line; whatever is not a message of the protocol is counted."""
        message = parse_line(line)
        if message is None:
            if line.strip():
                self.complaints.stray(line)
                self.transcript.note_unknown("line that is not a JSON object")
            return []
        method = message.get("method")
        if not isinstance(method, str):
            actions = self.calls.responded(message)
            if actions is None:
                self.transcript.note_unknown("response to an unknown call")
            return actions or []
        params = object_in(message.get("params"))
        if "id" not in message:
            return self._notified(method, params)
        request_id = message["id"]
        if isinstance(request_id, (dict, list)) or self.requests.is_open(request_id):
            # An answer would be taken for that to the first one.
            self.transcript.note_unknown("request under the id of another, or of none")
            return []
        if len(self.requests) >= _MOST_OPEN:
            self.transcript.note_unknown(f"request while {_MOST_OPEN} are open, refused")
            return [refuse(request_id, "too many requests are open")]
        return self._requested(method, request_id, params)

    def _notified(self, method: str, params: Mapping[str, Any]) -> Actions:
        if method == CLIENT_METHODS["session_update"]:
            return self._updated(params)
        if method == _CANCEL_REQUEST:
            request_id = params.get("requestId", params.get("id"))
            gone = self.requests.withdraw(request_id)
            return [*gone, refuse(request_id, "cancelled", CANCELLED)] if gone else []
        if method in _MODE_NOTICES:
            return self._changed_mode(params)
        windows = acp_windows(params)
        if not windows and not method.startswith("_"):  # An underscore marks a program's own extensions.
            self.transcript.note_unknown(f"notification {bounded_text(method)}")
        return [UsageReported(windows)] if windows else []

    def _updated(self, params: Mapping[str, Any]) -> Actions:
        if self._state.phase is DialoguePhase.LOADING:
            self._replayed += 1
            return []
        rows: Actions = [Note(row) for row in self.transcript.rows(params)]
        windows = acp_windows(params)
        rows += [UsageReported(windows)] if windows else []
        update = object_in(params.get("update"))
        kind = text_in(update.get("sessionUpdate"))
        if kind == "usage_update":
            self.usage.of_session(update)
        elif kind == "agent_message_chunk":
            rows += map(Note, self.usage.of_message(update))
        elif kind == "session_info_update":
            rows += self._retried(object_in(update.get("_meta")))
        elif kind in _OF_CALLS:
            rows += self._asked_anew(text_in(update.get("toolCallId")))
        elif kind in _OF_MODES and (gone := self._changed_mode(update)):
            return [*rows, *gone]
        if kind in WORK:
            rows += self._worked()
        self.requests.was_denied = self.requests.was_denied and kind not in GOES_ON
        return [*rows, *self._cancelled_beyond_limit()]

    def _changed_mode(self, update: Mapping[str, Any]) -> Actions:
        """Stop a program that has left the mode that was ordered; before its first prompt, that is looked at there."""
        self.modes.told(update)
        problem = self.modes.problem_later() if self._state.phase.is_open else None
        return [] if problem is None else self._stop(Reason.PERMISSION_DENIED, f"{problem}, so it was stopped")

    def _cancelled_beyond_limit(self) -> Actions:
        """Cancel the turn once it has had more rounds of tools than it may."""
        limit = self.order.max_turns
        if limit is None or self.transcript.rounds <= limit or not self._happen(DialogueHappening.LIMIT_PASSED):
            return []
        over = self._outcome(Reason.MAX_TURNS, f"{limit} turns were used up, and the program goes on")
        return [*self.requests.cancel_all(), self._cancel(), Expect(_CANCEL_S, over)]

    def _retried(self, meta: Mapping[str, Any]) -> Actions:
        """Handle what a program tells of a request that it tries once more."""
        failure = failure_in(meta)
        if failure is None or failure.is_final or not self._state.may_retry:
            return []
        if not failure.is_known:
            return [self._note(failure.message)]
        if failure.reason in {Reason.AUTH, Reason.BILLING}:  # No further try can help.
            return self._stop(failure.reason, failure.message)
        self._happen(DialogueHappening.RETRIED)
        return [self._note(failure.message), Retrying(failure.reason, failure.message)]

    def _worked(self) -> Actions:
        """End what was expected of a retry; end a turn that nobody asked for: without a prompt there is no slot."""
        if not self._happen(DialogueHappening.WORKED):
            return []
        if self._state.phase is DialoguePhase.STRAYING:
            return [self._note("it began a turn by itself, which was cancelled"), self._cancel()]
        return [Progress()]

    def _requested(self, method: str, request_id: Any, params: Mapping[str, Any]) -> Actions:
        session = text_in(params.get("sessionId"))
        request = None
        if method == CLIENT_METHODS["session_request_permission"]:
            request = asks.questions(request_id, session, params)
            about = read_as_model(ToolCallUpdate, params.get("toolCall"))
            if request is None and about is not None:
                call, rows = self.transcript.asked(about, session)
                actions = [*map(Note, rows), *self._cancelled_beyond_limit()]
                return [*actions, *self._permission(request_id, session, call, params.get("options"))]
        elif method == CLIENT_METHODS["elicitation_create"]:
            request = asks.form(request_id, session, params)
        elif method == _DRAIN:
            # What is said in a turn that is being cancelled would be lost with it.
            said, self._waiting = ([], self._waiting) if self._state.is_cancelled else (self._waiting, [])
            return [*map(Note, self.transcript.told(said)), reply(request_id, {"messages": said})]
        if request is None:
            # Some ask for files and terminals that they were not offered.
            self.transcript.note_unknown(f"request {bounded_text(method)}, refused")
            return [refuse(request_id, f"{method} is not supported")]
        return self.requests.put(request, None, None)

    def _permission(self, request_id: Any, session: str, call: AcpCall, options: Any) -> Actions:
        offered = [one for one in list_in(options) if not self.modes.leads_elsewhere(object_in(one))]
        is_cut = self._is_cut(call)
        request = asks.permission(
            request_id,
            session,
            call,
            offered,
            self.row.withheld,
            call.reads(self.order.cwd) if self.row.reads else None,
            is_cut=is_cut,
        )
        request.on_denial = lambda: self.transcript.denied(call)
        if self._state.is_cancelled or (self.order.read_only and not call.only_reads):
            return self.requests.refuse(request)
        self._asked[call.id] = _Asked(request_id, session, call, options, is_cut, call.parent)
        return self.requests.put(request, call.parent, self.transcript.agent_type_of(call.parent))

    def _is_cut(self, call: AcpCall) -> bool:
        return call.is_cut or (self.row.tells_late and call.is_untold)

    def _asked_anew(self, call_id: str) -> Actions:
        """Ask again about a call that was asked about before all of it, or its sub-agent, was known.

        Some programs ask by another way than they tell of their calls, and one may be faster than the other.
        """
        asked = self._asked.get(call_id)
        if asked is None:
            return []
        is_whole_now = asked.is_cut and not self._is_cut(asked.call)
        if not is_whole_now and asked.parent == asked.call.parent:
            return []
        del self._asked[call_id]
        gone = self.requests.withdraw(asked.request_id)
        return [*gone, *self._permission(asked.request_id, asked.session, asked.call, asked.options)] if gone else []

    # -- the end ---------------------------------------------------------------------------------------------------

    def ended(self, code: int) -> AgentOutcome:
        """Return the outcome: the ending that is known already, else the one that its exit shows."""
        if self._state.has_passed_limit:
            return self._outcome(*self._limit_passed())
        if self._ending is not None:
            return self._outcome(*self._ending)
        doubt = self._doubt if self._state.phase is DialoguePhase.GREETING else ""
        return self._outcome(*ended_early(code, self.complaints, has_begun=self._state.phase.is_open, doubt=doubt))

    def _limit_passed(self) -> Decision:
        return Reason.MAX_TURNS, f"{self.order.max_turns} turns were used up"

    def _stop(self, reason: Reason, message: str) -> Actions:
        self._ending = (reason, message)
        return [*self._unknown_note(), StopProgram(self._outcome(reason, message))]

    def _note(self, text: str) -> Note:
        self._notes += 1
        return Note(Row(RowType.NOTE, self._row_id(f"note:{self._notes}"), text=bounded_text(text)))

    def _unknown_note(self) -> Actions:
        unknown = +self.transcript.unknown
        if not unknown:
            return []
        text = "unknown: " + ", ".join(f"{what} ({count})" for what, count in sorted(unknown.items()))
        return [Note(Row(RowType.NOTE, self._row_id("unknown"), text=bounded_text(text)))]

    def _row_id(self, name: str) -> str:
        return f"{name}:{self.order.earlier_attempts}" if self.order.earlier_attempts else name

    def _tells_busy(self, message: str | None) -> bool:
        if self._state.phase.is_open:
            return False
        return any(sign in (message or "") for sign in self.row.busy) or self.complaints.has_any(self.row.busy)

    def _outcome(self, reason: Reason | None, message: str | None) -> AgentOutcome:
        rounds, limit = self.transcript.rounds, self.order.max_turns
        return AgentOutcome(
            reason=reason,
            message=message,
            final_message=self.transcript.answer or None,
            turns_used=rounds if limit is None else min(rounds, limit),
            usage=self.usage.spent(),
            cost_usd=self.usage.cost_usd,
            model=self.model,
            session=self.session or self.order.resume,
            touched_files=list(self.transcript.touched),
            is_busy=self._tells_busy(message),
        )


def _way_to_continue(greeted: InitializeResponse) -> str | None:
    """Return the method that continues a session, without its history being told again where that can be had."""
    capabilities = greeted.agent_capabilities
    if capabilities is None:
        return None
    of_sessions = capabilities.session_capabilities
    if of_sessions is not None and of_sessions.resume is not None:
        return AGENT_METHODS["session_resume"]
    return AGENT_METHODS["session_load"] if capabilities.load_session else None


def _as_text(text: str) -> str:
    """Return a text that no program takes for one of its own commands."""
    return f" {text}" if text.startswith("/") else text
