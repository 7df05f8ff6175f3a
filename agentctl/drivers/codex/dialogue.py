"""A conversation with `codex app-server`: what it says, and what is said and done about it."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agentctl.domain.activity.row import Phase, Row, RowType
from agentctl.domain.states import Reason
from agentctl.domain.windows import Window
from agentctl.drivers.codex.asks import OpenRequests
from agentctl.drivers.codex.errors import Ending, early_end, message_of, reason_of, telling
from agentctl.drivers.codex.items import as_dict, as_text, bounded, is_known, row_id, row_of, touched_by
from agentctl.drivers.codex.notices import is_output, is_quiet, notice
from agentctl.drivers.codex.requests import pending_of
from agentctl.drivers.codex.rounds import Rounds
from agentctl.drivers.codex.threads import Threads
from agentctl.drivers.codex.turns import Turns, unbegun
from agentctl.drivers.codex.windows import rejected, windows_in
from agentctl.drivers.codex.wire import object_in, refuse
from agentctl.drivers.dialogue import Action, Finished, Note, Outcome, Progress, Retrying, Stop, Told
from agentctl.drivers.order import Order

_ENVELOPE = frozenset({"jsonrpc", "id", "method", "params", "result", "error", "emittedAtMs", "trace"})
_STDERR_LINES = 5
_USAGE_LIMIT = "usageLimitExceeded"
#: What a shell's script ends with that does not find its program: any other way would not either.
_NOT_FOUND = frozenset({126, 127})
_Actions = list[Action]


class CodexDialogue:
    """One run of one agent: a root thread, its turns, and the threads of its sub-agents."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.threads, self.rounds, self.requests = Threads(order.earlier_attempts), Rounds(), OpenRequests()
        self.turns = Turns(order, self.threads, self._outcome, self._told_end)
        self.touched: dict[str, None] = {}
        self.unknown: Counter[str] = Counter()
        self.complaints: deque[str] = deque(maxlen=_STDERR_LINES)
        #: The error after which Codex tries again, until something comes of it.
        self.retried: Mapping[str, Any] | None = None
        self._items: dict[str, dict[str, Any]] = {}
        self._notes = 0
        #: The account's usage windows as they were told last.
        self._windows: list[Window] = []
        self._handlers: dict[str, Callable[[Mapping[str, Any]], _Actions]] = {
            "account/rateLimits/updated": self._used,
            "error": self._error,
            "item/completed": self._item_completed,
            "item/mcpToolCall/progress": self._tool_progress,
            "item/started": self._item_started,
            "serverRequest/resolved": self._resolved,
            "thread/closed": self._thread_closed,
            "thread/started": self._thread_started,
            "thread/tokenUsage/updated": self._tokens,
            "turn/completed": self._turn_completed,
            "turn/started": self._turn_started,
        }

    # -- what happens beside the program's output ------------------------------------------------------------------

    def begin(self) -> Sequence[Action]:
        """Open the conversation."""
        return self.turns.open()

    def complained(self, line: bytes) -> Sequence[Action]:
        """Keep what stderr tells: it explains an end that nothing else explains."""
        text = telling(line)
        if text:
            self.complaints.append(bounded(text))
        return ()

    def answered(self, key: str, answer: str, reason: str = "", *, by_rule: bool = False) -> Sequence[Action]:
        """Pass on an answer; why something was denied goes as a message, since its protocol has no place for it."""
        actions = self.requests.answered(key, answer)
        return [*actions, *self.turns.told(f"Denied by the user: {reason}", interrupt=True)] if reason else actions

    def told(self, text: str, *, interrupt: bool) -> Sequence[Action]:
        """Pass on a message."""
        return self.turns.told(text, interrupt=interrupt)

    def interrupted(self) -> Sequence[Action]:
        """Take back what is open and interrupt the turn."""
        return [] if self.turns.is_interrupted else [*self.requests.cancel_all(), *self.turns.interrupt()]

    def ended(self, code: int) -> Outcome:
        """Say how it ended: what was known before, else what the exit tells."""
        if self.turns.is_over:
            return self._outcome(Reason.MAX_TURNS, "the limit of turns was reached")
        if self.turns.ending is not None:
            return self._outcome(*self.turns.ending)
        reason, message = early_end(
            code, "; ".join(self.complaints), self.retried, has_begun=self.threads.root is not None, is_server=True
        )
        if self.threads.root is not None or reason is Reason.AUTH or code in _NOT_FOUND:
            return self._outcome(reason, message)
        return unbegun(self._outcome(reason, message))

    # -- what the program says -------------------------------------------------------------------------------------

    def received(self, line: bytes) -> Sequence[Action]:
        """Take a message: a notification, a request, or the response to a call."""
        message = object_in(line)
        if message is None:
            self.unknown["line that is no JSON object"] += 1
            return []
        self.unknown.update(f"field {name}" for name in message.keys() - _ENVELOPE)
        method, params = message.get("method"), as_dict(message.get("params"))
        if not isinstance(method, str):
            return self._responded(message)
        return self._requested(method, message["id"], params) if "id" in message else self._notified(method, params)

    def _responded(self, message: Mapping[str, Any]) -> _Actions:
        actions = self.turns.calls.responded(message)
        if actions is None:
            self.unknown["response to nothing"] += 1
        return actions or []

    def _requested(self, method: str, request_id: Any, params: Mapping[str, Any]) -> _Actions:
        item = self._items.get(as_text(params.get("itemId")), {})
        pending = pending_of(method, request_id, params, item)
        if pending is None:
            return [self._note(f"a request that is not known was refused: {method}"), refuse(request_id, method)]
        if pending.thread == self.threads.root:
            self.rounds.called()
        is_permission = any(ask.tool is not None for ask in pending.asks)
        if self.turns.is_interrupted or (self.order.read_only and is_permission):
            return self.requests.refuse(pending)
        parent = self.threads.parent_of(pending.thread)
        return self.requests.put(pending, parent, self.threads.get(parent).agent_type if parent else None)

    def _notified(self, method: str, params: Mapping[str, Any]) -> _Actions:
        text = notice(method, params)
        if text is not None:
            return [self._note(text)] if text else []
        handler = self._handlers.get(method)
        if handler is None and not is_quiet(method):
            self.unknown[f"notification {method}"] += 1
        actions = self._progressed() if is_output(method) else []
        return [*actions, *handler(params)] if handler is not None else actions

    def _turn_started(self, params: Mapping[str, Any]) -> _Actions:
        thread, turn = as_text(params.get("threadId")), as_text(as_dict(params.get("turn")).get("id"))
        actions = _noted(self.threads.turn_started(thread, turn))
        return [*actions, *self.turns.started(turn)] if thread == self.threads.root else actions

    def _turn_completed(self, params: Mapping[str, Any]) -> _Actions:
        thread, turn = as_text(params.get("threadId")), as_dict(params.get("turn"))
        status = as_text(turn.get("status"))
        actions = [*self.requests.of_thread(thread), *_noted(self.threads.turn_completed(thread, status))]
        if thread != self.threads.root:
            return [*actions, *self.turns.finish()]
        self.rounds.turn_ended()
        return [*actions, *self.turns.completed(self._ending_of(status, as_dict(turn.get("error"))))]

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
        return [*self._item(params, item, is_done=True), *self.turns.finish()]

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

    def _tool_progress(self, params: Mapping[str, Any]) -> _Actions:
        parent = self.threads.parent_of(as_text(params.get("threadId")))
        row = Row(RowType.TOOL, as_text(params.get("itemId")), Phase.PROGRESS, parent=parent, status="running")
        return [Note(row._replace(text=bounded(as_text(params.get("message")))))]

    def _tokens(self, params: Mapping[str, Any]) -> _Actions:
        thread = as_text(params.get("threadId"))
        usage, turn = as_dict(params.get("tokenUsage")), as_text(params.get("turnId"))
        if not self.threads.get(thread).count(turn, usage):
            return []
        actions: _Actions = [Note(self.threads.usage_row(thread))]
        if thread == self.threads.root:
            self.rounds.response_ended()
            limit = self.order.max_turns
            if limit is not None and self.rounds.used >= limit and not self.turns.is_over:
                actions += self.turns.stop_over()
        return actions

    def _error(self, params: Mapping[str, Any]) -> _Actions:
        error, thread = as_dict(params.get("error")), as_text(params.get("threadId"))
        reason, message = reason_of(error), message_of(error)
        note = self._note(message, self.threads.parent_of(thread))
        if error.get("codexErrorInfo") == _USAGE_LIMIT and (stopped := rejected(self._windows)):
            return [note, Told(stopped)]
        if reason is Reason.AUTH:
            self.retried = error
            return [note, Stop(self._outcome(reason, message))]
        if params.get("willRetry") is True:
            self.retried = error
            return [note, Retrying(reason, message)]
        return [note]

    def _used(self, params: Mapping[str, Any]) -> _Actions:
        windows = windows_in(params)
        self._windows = windows or self._windows
        return [Told(windows)] if windows else []

    def _thread_started(self, params: Mapping[str, Any]) -> _Actions:
        return _noted(self.threads.started(as_dict(params.get("thread"))))

    def _thread_closed(self, params: Mapping[str, Any]) -> _Actions:
        return [*_noted(self.threads.closed(as_text(params.get("threadId")))), *self.turns.finish()]

    def _resolved(self, params: Mapping[str, Any]) -> _Actions:
        return self.requests.resolved(params.get("requestId"))

    # -- the end ---------------------------------------------------------------------------------------------------

    def _ending_of(self, status: str, error: Mapping[str, Any]) -> Ending:
        if status == "completed":
            # A model that declines may say nothing at all, and Codex does not pass on why.
            is_silent = self.threads.root is None or not self.threads.get(self.threads.root).message
            return (None, "it ended without a word: its model may have declined to answer" if is_silent else None)
        if error:
            return (reason_of(error), message_of(error))
        if status == "interrupted" and self.requests.was_cancelled:
            return (Reason.PERMISSION_DENIED, "the answer to a request for permission was to stop the agent")
        return (Reason.MODEL_ERROR, f"the turn ended as {status or 'told by nobody'}")

    def _told_end(self, reason: Reason | None, message: str | None) -> _Actions:
        actions: _Actions = []
        if self.unknown:
            told = ", ".join(f"{what} ({count})" for what, count in sorted(self.unknown.items()))
            row = Row(RowType.NOTE, row_id("unknown", self.order.earlier_attempts), text=f"not known: {told}")
            actions.append(Note(row._replace(detail=dict(self.unknown))))
        return [*actions, Finished(self._outcome(reason, message))]

    def _outcome(self, reason: Reason | None, message: str | None) -> Outcome:
        root = self.threads.root
        return Outcome(
            reason=reason,
            message=message,
            final_message=self.threads.get(root).message if root else None,
            turns_used=self.rounds.used,
            usage=self.threads.spent(),
            model=self.turns.model,
            session=root or self.order.resume,
            touched_files=list(self.touched),
        )

    def _progressed(self) -> _Actions:
        was_retrying, self.retried = self.retried is not None, None
        return [Progress()] if was_retrying else []

    def _note(self, text: str, parent: str | None = None) -> Note:
        self._notes += 1
        name = row_id(f"note:{self._notes}", self.order.earlier_attempts)
        return Note(Row(RowType.NOTE, name, parent=parent, text=bounded(text)))


def _noted(rows: Iterable[Row]) -> _Actions:
    return [Note(row) for row in rows]
