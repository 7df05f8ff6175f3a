"""The dialogue with `codex app-server`: handles its notifications, requests and responses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agentctl.domain.activity.row import Phase, Row, RowType
from agentctl.domain.states import Reason
from agentctl.domain.tree.windows import Window
from agentctl.drivers.codex.account import codex_windows, rejected
from agentctl.drivers.codex.errors import Decision, early_end, is_telling, message_of, turn_error_reason
from agentctl.drivers.codex.items import is_known, item_row, row_id, touched_by
from agentctl.drivers.codex.notices import is_left_out, is_output, notice
from agentctl.drivers.codex.requests import pending_of
from agentctl.drivers.codex.threads import AgentThreads, Rounds
from agentctl.drivers.codex.turns import Actions, Turns
from agentctl.drivers.complaints import Complaining
from agentctl.drivers.dialogue import (
    SILENT,
    Action,
    AgentOutcome,
    Finished,
    Note,
    Progress,
    Retrying,
    StopProgram,
    UsageReported,
)
from agentctl.drivers.jsonrpc import refuse
from agentctl.drivers.order import Order
from agentctl.drivers.requests import OpenRequests
from agentctl.drivers.values import bounded_text, object_in, parse_line, text_in

_ENVELOPE = frozenset({"jsonrpc", "id", "method", "params", "result", "error", "emittedAtMs", "trace"})
_USAGE_LIMIT = "usageLimitExceeded"


class CodexDialogue(Complaining):
    """One run of one agent: a root thread, its turns, and the threads of its sub-agents."""

    def __init__(self, order: Order) -> None:
        super().__init__(is_telling)
        self.order, self.threads = order, AgentThreads(order.earlier_attempts)
        self.rounds, self.requests = Rounds(), OpenRequests()
        self.turns = Turns(order, self.threads, self._outcome, self._finished)
        self.unknown: Counter[str] = Counter()
        self.touched: dict[str, None] = {}
        #: The error after which Codex is retrying; None as soon as it makes progress.
        self.retried: Mapping[str, Any] | None = None
        self._items: dict[str, dict[str, Any]] = {}
        self._notes = 0
        #: The account's usage windows, as last reported.
        self._windows: list[Window] = []
        self._handlers: dict[str, Callable[[Mapping[str, Any]], Actions]] = {
            "account/rateLimits/updated": self._used,
            "error": self._error,
            "item/completed": self._item_completed,
            "item/mcpToolCall/progress": self._tool_progress,
            "item/started": self._item_started,
            "serverRequest/resolved": self._resolved,
            "thread/closed": self._thread_closed,
            "thread/settings/updated": self._settings_updated,
            "thread/started": self._thread_started,
            "thread/tokenUsage/updated": self._tokens,
            "turn/completed": self._turn_completed,
            "turn/started": self._turn_started,
        }

    # -- events other than the program's output --------------------------------------------------------------------

    def begin(self) -> Sequence[Action]:
        """Open the conversation."""
        return self.turns.open()

    def answered(self, key: str, answer: str, reason: str = "", *, by_rule: bool = False) -> Sequence[Action]:
        """Pass on an answer; the reason for a denial goes as a message, since the protocol has no field for it."""
        actions = self.requests.answered(key, answer)
        return [*actions, *self.turns.told(f"Denied by the user: {reason}", interrupt=True)] if reason else actions

    def told(self, text: str, *, interrupt: bool) -> Sequence[Action]:
        """Pass on a message."""
        return self.turns.told(text, interrupt=interrupt)

    def interrupted(self) -> Sequence[Action]:
        """Withdraw the open requests and interrupt the turn."""
        return [] if self.turns.is_interrupted else [*self.requests.cancel_all(), *self.turns.interrupt()]

    def ended(self, code: int) -> AgentOutcome:
        """Return the outcome: the ending that is known already, else the one that its exit shows."""
        if self.turns.is_over:
            return self._outcome(Reason.MAX_TURNS, "the limit of turns was reached")
        if self.turns.ending is not None:
            return self._outcome(*self.turns.ending)
        has_begun = self.threads.root is not None
        return self._outcome(*early_end(code, self.complaints, self.retried, has_begun=has_begun))

    # -- the program's output --------------------------------------------------------------------------------------

    def received(self, line: bytes) -> Sequence[Action]:
        """Handle a line of the program's output."""
        message = parse_line(line)
        if message is None:
            self.complaints.stray(line)
            self.unknown["line that is not a JSON object"] += 1
            return []
        return self._handle(message)

    def _handle(self, message: Mapping[str, Any]) -> Actions:
        """Handle a notification, a request, or the response to a call."""
        self.unknown.update(f"field {name}" for name in message.keys() - _ENVELOPE)
        method, params = message.get("method"), object_in(message.get("params"))
        if not isinstance(method, str):
            return self._responded(message)
        return self._requested(method, message["id"], params) if "id" in message else self._notified(method, params)

    def _responded(self, message: Mapping[str, Any]) -> Actions:
        actions = self.turns.calls.responded(message)
        if actions is None:
            self.unknown["response to an unknown call"] += 1
        return actions or []

    def _requested(self, method: str, request_id: Any, params: Mapping[str, Any]) -> Actions:
        item = self._items.get(text_in(params.get("itemId")), {})
        pending = pending_of(method, request_id, params, item)
        if pending is None:
            note = self._note(f"an unknown request was refused: {method}")
            return [note, refuse(request_id, f"{method} is not supported")]
        if pending.owner == self.threads.root:
            self.rounds.called()
        is_permission = any(ask.tool is not None for ask in pending.asks)
        if self.turns.is_interrupted or (self.order.read_only and is_permission):
            return self.requests.refuse(pending)
        parent = self.threads.parent_of(pending.owner)
        return self.requests.put(pending, parent, self.threads.get(parent).agent_type if parent else None)

    def _notified(self, method: str, params: Mapping[str, Any]) -> Actions:
        text = notice(method, params)
        if text is not None:
            return [self._note(text)] if text else []
        handler = self._handlers.get(method)
        if handler is None and not is_left_out(method):
            self.unknown[f"notification {method}"] += 1
        actions = self._progressed() if is_output(method) else []
        return [*actions, *handler(params)] if handler is not None else actions

    def _turn_started(self, params: Mapping[str, Any]) -> Actions:
        thread, turn = text_in(params.get("threadId")), text_in(object_in(params.get("turn")).get("id"))
        actions = noted(self.threads.turn_started(thread, turn))
        return [*actions, *self.turns.started(turn)] if thread == self.threads.root else actions

    def _turn_completed(self, params: Mapping[str, Any]) -> Actions:
        thread, turn = text_in(params.get("threadId")), object_in(params.get("turn"))
        status = text_in(turn.get("status"))
        actions = [*self.requests.withdraw_of(thread), *noted(self.threads.turn_completed(thread, status))]
        if thread != self.threads.root:
            return [*actions, *self.turns.finish()]
        self.rounds.turn_ended()
        return [*actions, *self.turns.completed(self._ending_of(status, object_in(turn.get("error"))))]

    def _item_started(self, params: Mapping[str, Any]) -> Actions:
        item = object_in(params.get("item"))
        self._items[text_in(item.get("id"))] = item
        self._count_round(params, item)
        return self._item(params, item, is_done=False)

    def _item_completed(self, params: Mapping[str, Any]) -> Actions:
        item = object_in(params.get("item"))
        if self._items.pop(text_in(item.get("id")), None) is None:
            self._count_round(params, item)
        self.touched |= dict.fromkeys(touched_by(item))
        return [*self._item(params, item, is_done=True), *self.turns.finish()]

    def _count_round(self, params: Mapping[str, Any], item: Mapping[str, Any]) -> None:
        if params.get("threadId") == self.threads.root:
            self.rounds.item(item)

    def _item(self, params: Mapping[str, Any], item: Mapping[str, Any], *, is_done: bool) -> Actions:
        thread, kind = text_in(params.get("threadId")), item.get("type")
        if not is_known(item):
            self.unknown[f"item {text_in(kind) or 'without a type'}"] += 1
            return []
        actions = self._progressed() if kind != "userMessage" else []
        if kind == "agentMessage" and is_done:
            self.threads.get(thread).message = text_in(item.get("text"))
        if kind == "subAgentActivity":
            return [*actions, *noted(self.threads.sub_agent_activity(item, thread))]
        return [*actions, *self._rows(item, is_done=is_done, parent=self.threads.parent_of(thread))]

    def _tool_progress(self, params: Mapping[str, Any]) -> Actions:
        parent = self.threads.parent_of(text_in(params.get("threadId")))
        row = Row(RowType.TOOL, text_in(params.get("itemId")), Phase.PROGRESS, parent=parent, status="running")
        return [Note(row._replace(text=bounded_text(text_in(params.get("message")))))]

    def _tokens(self, params: Mapping[str, Any]) -> Actions:
        thread = text_in(params.get("threadId"))
        usage, turn = object_in(params.get("tokenUsage")), text_in(params.get("turnId"))
        if not self.threads.get(thread).count(turn, usage):
            return []
        actions: Actions = [Note(self.threads.usage_row(thread))]
        if thread == self.threads.root:
            self.rounds.response_ended()
            limit = self.order.max_turns
            if limit is not None and self.rounds.used >= limit:
                actions += self.turns.pass_limit()
        return actions

    def _error(self, params: Mapping[str, Any]) -> Actions:
        error, parent = object_in(params.get("error")), self.threads.parent_of(text_in(params.get("threadId")))
        if error.get("codexErrorInfo") == _USAGE_LIMIT and (stopped := rejected(self._windows)):
            return [self._note(message_of(error), parent), UsageReported(stopped)]
        failed = self._failed(error, parent, will_retry=params.get("willRetry") is True)
        return failed or [self._note(message_of(error), parent)]

    def _failed(self, error: Mapping[str, Any], parent: str | None = None, *, will_retry: bool) -> Actions:
        """Return the actions for an error that is final or after which Codex retries; none for any other."""
        reason, message = turn_error_reason(error), message_of(error)
        if reason is not Reason.AUTH and not will_retry:
            return []
        self.retried = error
        is_final = reason is Reason.AUTH
        return [
            self._note(message, parent),
            StopProgram(self._outcome(reason, message)) if is_final else Retrying(reason, message),
        ]

    def _progressed(self) -> Actions:
        was_retrying, self.retried = self.retried is not None, None
        return [Progress()] if was_retrying else []

    def _rows(self, item: Mapping[str, Any], *, is_done: bool, parent: str | None = None) -> Actions:
        """Return the rows of an item, and those of the sub-agents in it."""
        actions: Actions = []
        if item.get("type") == "collabAgentToolCall":
            actions += noted(self.threads.parent_call(item, is_done=is_done))
            if item.get("tool") == "spawnAgent" and item.get("status") != "failed":
                return actions  # The sub-agent has its own row.
        row = item_row(item, is_done=is_done, parent=parent)
        is_told = row is not None and row.name == "user" and parent and self.threads.is_prompt(parent, row.text or "")
        return [*actions, Note(row)] if row is not None and not is_told else actions

    def _used(self, params: Mapping[str, Any]) -> Actions:
        windows = codex_windows(params)
        self._windows = windows or self._windows
        return [UsageReported(windows)] if windows else []

    def _settings_updated(self, params: Mapping[str, Any]) -> Actions:
        return self.turns.changed(object_in(params.get("threadSettings")))

    def _thread_started(self, params: Mapping[str, Any]) -> Actions:
        return noted(self.threads.started(object_in(params.get("thread"))))

    def _thread_closed(self, params: Mapping[str, Any]) -> Actions:
        return [*noted(self.threads.closed(text_in(params.get("threadId")))), *self.turns.finish()]

    def _resolved(self, params: Mapping[str, Any]) -> Actions:
        return self.requests.withdraw(params.get("requestId"))

    def _note(self, text: str, parent: str | None = None) -> Note:
        self._notes += 1
        name = row_id(f"note:{self._notes}", self.order.earlier_attempts)
        return Note(Row(RowType.NOTE, name, parent=parent, text=bounded_text(text)))

    def _unknown_note(self) -> Actions:
        """Return the note that counts unknown lines; none if all were known."""
        if not self.unknown:
            return []
        text = "unknown: " + ", ".join(f"{what} ({count})" for what, count in sorted(self.unknown.items()))
        row = Row(RowType.NOTE, row_id("unknown", self.order.earlier_attempts), text=text)
        return [Note(row._replace(detail=dict(self.unknown)))]

    # -- the end ---------------------------------------------------------------------------------------------------

    def _ending_of(self, status: str, error: Mapping[str, Any]) -> Decision:
        if status == "completed":
            # A model that declines may send no message at all, and Codex does not pass on why.
            is_silent = self.threads.root is None or not self.threads.get(self.threads.root).message
            return (None, SILENT if is_silent else None)
        if error:
            return (turn_error_reason(error), message_of(error))
        if status == "interrupted" and self.requests.was_stopped:
            return (Reason.PERMISSION_DENIED, "the answer to a request for permission was to stop the agent")
        return (Reason.MODEL_ERROR, f"the turn ended with status {status or 'unknown'}")

    def _finished(self, reason: Reason | None, message: str | None) -> Actions:
        return [*self._unknown_note(), Finished(self._outcome(reason, message))]

    def _outcome(self, reason: Reason | None, message: str | None) -> AgentOutcome:
        return self._results()._replace(
            reason=reason,
            message=message,
            session=self.threads.root or self.order.resume,
            touched_files=list(self.touched),
        )

    def _results(self) -> AgentOutcome:
        root = self.threads.root
        return AgentOutcome(
            final_message=self.threads.get(root).message if root else None,
            turns_used=self.rounds.used,
            usage=self.threads.spent(),
            model=self.turns.model,
        )


def noted(rows: Iterable[Row]) -> Actions:
    """Return the actions that append rows to the activity."""
    return [Note(row) for row in rows]
