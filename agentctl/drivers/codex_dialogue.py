"""A conversation with `codex app-server`: what it says, and what is said and done about it."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agentctl.domain.activity import Row, RowType
from agentctl.domain.states import Reason
from agentctl.drivers import codex_opening as opening
from agentctl.drivers.codex_asks import OpenRequests
from agentctl.drivers.codex_errors import message_of, reason_in, reason_of, telling
from agentctl.drivers.codex_items import as_dict, as_text, bounded, is_known, row_of, touched_by
from agentctl.drivers.codex_notices import is_output, is_quiet, notice
from agentctl.drivers.codex_requests import pending_of
from agentctl.drivers.codex_rounds import Rounds
from agentctl.drivers.codex_threads import Threads
from agentctl.drivers.codex_wire import Calls, refuse, tell
from agentctl.drivers.dialogue import Action, Finished, HangUp, Note, Outcome, Progress, Retrying, Say, SessionIs, Stop
from agentctl.drivers.order import Order

_ENVELOPE = frozenset({"jsonrpc", "id", "method", "params", "result", "error", "emittedAtMs", "trace"})
_STDERR_LINES = 5
_Actions = list[Action]


class CodexDialogue:
    """One run of one agent: a root thread, its turns, and the threads of its sub-agents."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.threads, self.rounds = Threads(), Rounds()
        self.requests = OpenRequests()
        self.model = order.model
        #: Messages for the next turn.
        self.waiting: list[str] = [order.prompt]
        self.touched: dict[str, None] = {}
        self.unknown: Counter[str] = Counter()
        self.complaints: deque[str] = deque(maxlen=_STDERR_LINES)
        self.is_turning = False
        self.is_interrupted = False
        self.is_over_turns = False
        #: How the last turn of the root thread ended, as long as that is not told.
        self.ending: tuple[Reason | None, str | None] | None = None
        self.last_error: dict[str, Any] = {}
        self._turn = ""
        self._is_retrying = False
        self._calls = Calls()
        #: Messages said into a running turn that Codex has not taken yet.
        self._steering = 0
        self._items: dict[str, dict[str, Any]] = {}
        self._notes = 0

    # -- what happens beside the program's output ------------------------------------------------------------------

    def begin(self) -> Sequence[Action]:
        """Greet and open the thread; for one that may only read, first ask which MCP servers are configured."""
        call = self._calls.call
        greeting = call("initialize", opening.greeting(self.order), _nothing, self._could_not_begin)
        if not self.order.read_only:
            return [greeting, tell("initialized"), self._open(())]
        where = {"cwd": self.order.cwd or None}
        asking = call("config/read", where, self._configured, self._could_not_begin)
        return [greeting, tell("initialized"), asking]

    def complained(self, line: bytes) -> Sequence[Action]:
        """Keep what stderr tells: it explains an end that nothing else explains."""
        text = telling(line)
        if text:
            self.complaints.append(bounded(text))
        return ()

    def answered(self, key: str, answer: str) -> Sequence[Action]:
        """Pass on an answer."""
        return self.requests.answered(key, answer)

    def told(self, text: str, *, interrupt: bool) -> Sequence[Action]:
        """Begin a turn with a message, or keep it for the next one; `interrupt` steers the turn that runs."""
        if interrupt and self._turn and not self.is_interrupted:
            return [self._steer(text)]
        self.waiting.append(text)
        return [] if self.is_turning or self.threads.root is None or self.is_interrupted else self._begin_turn()

    def interrupted(self) -> Sequence[Action]:
        """Interrupt the turn; what a tool of it has running ends with the program, which is hung up on then."""
        if self.is_interrupted:
            return []
        self.is_interrupted = True
        actions = self.requests.cancel_all()
        if not self.is_turning:
            return [*actions, HangUp()]
        return [*actions, *self._interrupt_turn()]

    def ended(self, code: int) -> Outcome:
        """Say how it ended: what was known before, else what the exit tells."""
        if self.is_over_turns:
            return self._outcome(*self._over_turns())
        if self.ending is not None:
            return self._outcome(*self.ending)
        if self.is_interrupted:
            return self._outcome(Reason.SIGNAL, "it was interrupted")
        said = "; ".join(self.complaints)
        if self.last_error:
            return self._outcome(reason_of(self.last_error), message_of(self.last_error))
        if code < 0:
            return self._outcome(Reason.SIGNAL, f"signal {-code} ended Codex. {said}".strip())
        if (reason := reason_in(said)) is Reason.AUTH:
            return self._outcome(reason, said)
        if code > 0:
            return self._outcome(Reason.EXIT_CODE, f"Codex ended with exit code {code}. {said}".strip())
        return self._outcome(Reason.TRUNCATED, f"Codex ended in the middle of a turn. {said}".strip())

    # -- what the program says -------------------------------------------------------------------------------------

    def received(self, line: bytes) -> Sequence[Action]:
        """Take a message: a notification, a request, or the response to a call."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            self.unknown["line that is no JSON object"] += 1
            return []
        self.unknown.update(f"field {name}" for name in message.keys() - _ENVELOPE)
        method, params = message.get("method"), as_dict(message.get("params"))
        if not isinstance(method, str):
            return self._responded(message)
        return self._requested(method, message["id"], params) if "id" in message else self._notified(method, params)

    def _responded(self, message: Mapping[str, Any]) -> _Actions:
        actions = self._calls.responded(message)
        if actions is None:
            self.unknown["response to nothing"] += 1
        return actions or []

    def _requested(self, method: str, request_id: Any, params: Mapping[str, Any]) -> _Actions:
        item = self._items.get(as_text(params.get("itemId")), {})
        pending = pending_of(method, request_id, params, item)
        if pending is None:
            return [self._note(f"a request that is not known was refused: {method}"), refuse(request_id, method)]
        is_permission = any(ask.tool is not None for ask in pending.asks)
        if self.is_interrupted or (self.order.read_only and is_permission):
            return self.requests.refuse(pending)
        parent = self.threads.parent_of(pending.thread)
        return self.requests.put(pending, parent, self.threads.get(parent).agent_type if parent else None)

    def _notified(self, method: str, params: Mapping[str, Any]) -> _Actions:
        text = notice(method, params)
        if text is not None:
            return [self._note(text)] if text else []
        handler = _HANDLERS.get(method)
        if handler is None and not is_quiet(method):
            self.unknown[f"notification {method}"] += 1
        actions = self._progressed() if is_output(method) else []
        return [*actions, *handler(self, params)] if handler is not None else actions

    def _turn_started(self, params: Mapping[str, Any]) -> _Actions:
        thread, turn = as_text(params.get("threadId")), as_text(as_dict(params.get("turn")).get("id"))
        actions = _noted(self.threads.turn_started(thread, turn))
        return [*actions, *self._turns(turn)] if thread == self.threads.root else actions

    def _turn_completed(self, params: Mapping[str, Any]) -> _Actions:
        thread, turn = as_text(params.get("threadId")), as_dict(params.get("turn"))
        status = as_text(turn.get("status"))
        actions = [*self.requests.of_thread(thread), *_noted(self.threads.turn_completed(thread, status))]
        if thread != self.threads.root:
            return [*actions, *self._finish()]
        self.is_turning, self._turn = False, ""
        self.rounds.turn_ended()
        self.ending = self._ending_of(status, as_dict(turn.get("error")))
        if self.is_interrupted:
            return [*actions, HangUp()]
        if self.ending[0] is None and self.waiting:
            return [*actions, *self._begin_turn()]
        return [*actions, *self._finish()]

    def _item_started(self, params: Mapping[str, Any]) -> _Actions:
        item = as_dict(params.get("item"))
        self._items[as_text(item.get("id"))] = item
        self._count_round(params, item)
        return self._item(params, item, is_done=False)

    def _item_completed(self, params: Mapping[str, Any]) -> _Actions:
        item = as_dict(params.get("item"))
        if self._items.pop(as_text(item.get("id")), None) is None:
            self._count_round(params, item)
        self.touched |= dict.fromkeys(touched_by(item))
        return [*self._item(params, item, is_done=True), *self._finish()]

    def _count_round(self, params: Mapping[str, Any], item: Mapping[str, Any]) -> None:
        if params.get("threadId") == self.threads.root:
            self.rounds.item(item)

    def _item(self, params: Mapping[str, Any], item: Mapping[str, Any], *, is_done: bool) -> _Actions:
        thread, kind = as_text(params.get("threadId")), item.get("type")
        if not is_known(item):
            self.unknown[f"item {as_text(kind) or 'without a type'}"] += 1
            return []
        actions = self._progressed() if kind != "userMessage" else []
        if kind == "agentMessage" and is_done:
            self.threads.get(thread).message = as_text(item.get("text"))
        if kind == "collabAgentToolCall":
            actions += _noted(self.threads.told_by_parent(item, is_done=is_done))
            if item.get("tool") == "spawnAgent" and item.get("status") != "failed":
                return actions  # The sub-agent's own row tells of it.
        if kind == "subAgentActivity":
            return [*actions, *_noted(self.threads.told_of(item, thread))]
        row = row_of(item, is_done=is_done, parent=self.threads.parent_of(thread))
        return [*actions, Note(row)] if row is not None else actions

    def _tokens(self, params: Mapping[str, Any]) -> _Actions:
        thread = as_text(params.get("threadId"))
        usage, turn = as_dict(params.get("tokenUsage")), as_text(params.get("turnId"))
        if not self.threads.get(thread).count(turn, usage):
            return []
        actions: _Actions = [Note(self.threads.usage_row(thread))]
        if thread == self.threads.root:
            self.rounds.response_ended()
            actions += self._look_at_rounds()
        return actions

    def _error(self, params: Mapping[str, Any]) -> _Actions:
        error, thread = as_dict(params.get("error")), as_text(params.get("threadId"))
        reason, message = reason_of(error), message_of(error)
        note = self._note(message, self.threads.parent_of(thread))
        if reason is Reason.AUTH:
            return [note, Stop(self._outcome(reason, message))]
        if params.get("willRetry") is True:
            self._is_retrying, self.last_error = True, error
            return [note, Retrying(reason, message)]
        return [note]

    def _thread_started(self, params: Mapping[str, Any]) -> _Actions:
        return _noted(self.threads.started(as_dict(params.get("thread"))))

    def _thread_closed(self, params: Mapping[str, Any]) -> _Actions:
        return [*_noted(self.threads.closed(as_text(params.get("threadId")))), *self._finish()]

    def _resolved(self, params: Mapping[str, Any]) -> _Actions:
        return self.requests.resolved(params.get("requestId"))

    # -- beginning, steering, interrupting -------------------------------------------------------------------------

    def _configured(self, result: Mapping[str, Any]) -> _Actions:
        return [self._open(as_dict(as_dict(result.get("config")).get("mcp_servers")))]

    def _open(self, configured_servers: Iterable[str]) -> Say:
        method = "thread/resume" if self.order.resume else "thread/start"
        params = opening.thread_params(self.order, configured_servers)
        return self._calls.call(method, params, self._opened, self._could_not_begin)

    def _opened(self, result: Mapping[str, Any]) -> _Actions:
        thread = as_text(as_dict(result.get("thread")).get("id"))
        if not thread:
            return self._could_not_begin("Codex opened a thread without an id")
        self.threads.root = thread
        self.model = as_text(result.get("model")) or self.model
        begun = [] if self.is_interrupted else self._begin_turn()
        return [SessionIs(thread, self.model), *begun]

    def _could_not_begin(self, message: str) -> _Actions:
        return [Stop(self._outcome(reason_in(message) or Reason.NOT_STARTED, f"Codex did not begin: {message}"))]

    def _begin_turn(self) -> _Actions:
        texts, self.waiting = self.waiting, []
        self.is_turning, self.ending, self._turn = True, None, ""
        params = opening.turn_params(self.order, self.threads.root or "", texts)
        return [self._calls.call("turn/start", params, self._turn_is, self._turn_refused)]

    def _turn_is(self, result: Mapping[str, Any]) -> _Actions:
        return self._turns(as_text(as_dict(result.get("turn")).get("id")))

    def _turns(self, turn: str) -> _Actions:
        """Take the id of the root thread's turn, told twice: it can be steered and interrupted from now on."""
        self.ending = None
        is_news, self._turn, self.is_turning = turn != self._turn, turn, True
        self.threads.get(self.threads.root or "").turns.add(turn)
        return self._interrupt_turn() if is_news and self.is_interrupted else []

    def _turn_refused(self, message: str) -> _Actions:
        self.is_turning = False
        self.ending = (reason_in(message) or Reason.MODEL_ERROR, f"Codex began no turn: {message}")
        return [HangUp()] if self.is_interrupted else self._finish()

    def _interrupt_turn(self) -> _Actions:
        if not self._turn:
            return []  # Its id is on its way.
        params = {"threadId": self.threads.root, "turnId": self._turn}
        return [self._calls.call("turn/interrupt", params, _nothing, self._not_interrupted)]

    def _not_interrupted(self, _: str) -> _Actions:
        """The turn had ended by itself; if its end was told before, nothing else is to come."""
        return [HangUp()] if self.is_interrupted and not self.is_turning else []

    def _steer(self, text: str) -> Say:
        self._steering += 1

        def taken(_: Mapping[str, Any]) -> _Actions:
            self._steering -= 1
            return self._finish()

        def refused(_: str) -> _Actions:
            """The turn is over, or of a kind that takes nothing: the message is one for the next."""
            self._steering -= 1
            self.waiting.append(text)
            return [] if self.is_turning or self.is_interrupted else self._begin_turn()

        params = {"threadId": self.threads.root, "expectedTurnId": self._turn, "input": opening.inputs([text])}
        return self._calls.call("turn/steer", params, taken, refused)

    # -- the end ---------------------------------------------------------------------------------------------------

    def _ending_of(self, status: str, error: Mapping[str, Any]) -> tuple[Reason | None, str | None]:
        if self.is_over_turns:
            return self._over_turns()
        if status == "completed":
            return (None, None)
        if error:
            return (reason_of(error), message_of(error))
        if status == "interrupted" and self.requests.was_cancelled:
            return (Reason.PERMISSION_DENIED, "the answer to a request for permission was to stop the agent")
        return (Reason.MODEL_ERROR, f"the turn ended as {status or 'told by nobody'}")

    def _over_turns(self) -> tuple[Reason, str]:
        return (Reason.MAX_TURNS, f"{self.order.max_turns} turns were used up")

    def _look_at_rounds(self) -> _Actions:
        limit = self.order.max_turns
        if limit is None or self.rounds.used < limit or self.is_over_turns:
            return []
        self.is_over_turns = True
        return self._interrupt_turn()

    def _finish(self) -> _Actions:
        """The agent has ended when its turn has, and those of its sub-agents, and nothing is being said to it."""
        if self.ending is None or self.is_turning or self._steering:
            return []
        if self.ending[0] is None and self.threads.are_children_working():
            return []
        actions: _Actions = []
        if self.unknown:
            told = ", ".join(f"{what} ({count})" for what, count in sorted(self.unknown.items()))
            actions.append(Note(Row(RowType.NOTE, "unknown", text=f"not known: {told}", detail=dict(self.unknown))))
        outcome, self.ending = self._outcome(*self.ending), None
        return [*actions, Finished(outcome)]

    def _outcome(self, reason: Reason | None, message: str | None) -> Outcome:
        root = self.threads.root
        return Outcome(
            reason=reason,
            message=message,
            final_message=self.threads.get(root).message if root else None,
            turns_used=self.rounds.used,
            usage=self.threads.spent(),
            model=self.model,
            session=root or self.order.resume,
            touched_files=list(self.touched),
        )

    def _progressed(self) -> _Actions:
        was_retrying, self._is_retrying = self._is_retrying, False
        self.last_error = {}
        return [Progress()] if was_retrying else []

    def _note(self, text: str, parent: str | None = None) -> Note:
        self._notes += 1
        return Note(Row(RowType.NOTE, f"note:{self._notes}", parent=parent, text=bounded(text)))


def _nothing(_: Mapping[str, Any]) -> _Actions:
    return []


def _noted(rows: Iterable[Row]) -> _Actions:
    return [Note(row) for row in rows]


_HANDLERS: dict[str, Callable[[CodexDialogue, Mapping[str, Any]], _Actions]] = {
    "error": CodexDialogue._error,
    "item/completed": CodexDialogue._item_completed,
    "item/started": CodexDialogue._item_started,
    "serverRequest/resolved": CodexDialogue._resolved,
    "thread/closed": CodexDialogue._thread_closed,
    "thread/started": CodexDialogue._thread_started,
    "thread/tokenUsage/updated": CodexDialogue._tokens,
    "turn/completed": CodexDialogue._turn_completed,
    "turn/started": CodexDialogue._turn_started,
}
