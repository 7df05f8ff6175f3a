"""The dialogue with `codex exec --json`: a single turn, in which Codex asks nothing and takes no messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentctl.domain.activity.row import Row, RowType
from agentctl.drivers.codex.conversation import Actions, CodexConversation
from agentctl.drivers.codex.errors import INTERRUPTED, Decision, early_end, message_of, reason_of
from agentctl.drivers.codex.execitems import item_of, plan_of
from agentctl.drivers.codex.items import is_known, is_tool, row_id, touched_by
from agentctl.drivers.codex.threads import AgentThreads
from agentctl.drivers.dialogue import Action, AgentOutcome, HangUp, Note, Say, SessionIs
from agentctl.drivers.order import Order
from agentctl.drivers.values import count_in, object_in, text_in

#: Texts of errors after which Codex retries; any other error is reported again at the end of the turn.
_RETRIES = re.compile(r"reconnecting|retrying", re.IGNORECASE)
_SPENT = ("input", "output", "cached")


class ExecDialogue(CodexConversation):
    """One run of an agent by `codex exec`."""

    ROWS = "exec-"

    def __init__(self, order: Order) -> None:
        super().__init__(order, AgentThreads())
        self.rounds = 0
        self.usage: dict[str, int] = {}
        self.message: str | None = None
        #: How the turn ended, once that is known.
        self.ending: Decision | None = None
        #: The tokens that the thread had used before; None if that is unknown: then this run's usage is unknown too.
        self._before = order.used_before if order.resume else dict.fromkeys(_SPENT, 0)
        self._is_in_round = False
        self._handlers: dict[str, Callable[[Mapping[str, Any]], Actions]] = {
            "error": self._error,
            "item.completed": self._item_completed,
            "item.started": self._item_started,
            "item.updated": self._item_updated,
            "thread.started": self._thread_started,
            "turn.completed": self._turn_completed,
            "turn.failed": self._turn_failed,
            "turn.started": self._turn_started,
        }

    # -- events other than the program's output --------------------------------------------------------------------

    def begin(self) -> Sequence[Action]:
        """Write the prompt; Codex reads its input to the end before it begins."""
        return [Say(self.order.prompt.encode(errors="replace")), HangUp()]

    def answered(self, key: str, answer: str, reason: str = "", *, by_rule: bool = False) -> Sequence[Action]:
        """Do nothing: it asks nothing."""
        return ()

    def told(self, text: str, *, interrupt: bool) -> Sequence[Action]:
        """Do nothing: it takes no messages, since its input is closed."""
        return ()

    def interrupted(self) -> Sequence[Action]:
        """Record the ending: the host sends SIGINT, since there is no protocol for this, and Codex reports no end."""
        self.ending = self.ending or INTERRUPTED
        return ()

    def ended(self, code: int) -> AgentOutcome:
        """Return the outcome: the turn's ending, else the one that the exit shows."""
        ending = self.ending or early_end(
            code, "; ".join(self.complaints), self.retried, has_begun=self.threads.root is not None
        )
        return self._outcome(*ending)

    # -- the program's output --------------------------------------------------------------------------------------

    def _handle(self, event: Mapping[str, Any]) -> Actions:
        """Handle an event."""
        kind = text_in(event.get("type"))
        handler = self._handlers.get(kind)
        if handler is None:
            self.unknown[f"event {kind or 'without a type'}"] += 1
            return []
        return handler(event)

    def _thread_started(self, event: Mapping[str, Any]) -> Actions:
        thread = text_in(event.get("thread_id"))
        if not thread:
            return []
        self.threads.root = thread
        return [SessionIs(thread, self.order.model, self._before)]

    def _turn_started(self, _: Mapping[str, Any]) -> Actions:
        return []

    def _turn_completed(self, event: Mapping[str, Any]) -> Actions:
        self.ending = self.ending or (None, None)
        return [*self._used(object_in(event.get("usage"))), *self._unknown_note()]

    def _used(self, usage: Mapping[str, Any]) -> Actions:
        """Handle the token counts of the whole thread, which include all its earlier runs."""
        thread = self.threads.root
        if not usage or thread is None or self._before is None:
            return []
        whole, cached = count_in(usage.get("input_tokens")), count_in(usage.get("cached_input_tokens"))
        counts = (max(0, whole - cached), count_in(usage.get("output_tokens")), cached)
        used = dict(zip(_SPENT, counts, strict=True))
        self.usage = {key: max(0, value - count_in(self._before.get(key))) for key, value in used.items()}
        row = Row(RowType.USAGE, row_id(f"usage:{thread}", self.order.earlier_attempts), detail=self.usage)
        return [Note(row), SessionIs(thread, self.order.model, used)]

    def _turn_failed(self, event: Mapping[str, Any]) -> Actions:
        error = object_in(event.get("error"))
        self.ending = self.ending or (reason_of(error), message_of(error))
        return [self._note(message_of(error)), *self._unknown_note()]

    def _error(self, event: Mapping[str, Any]) -> Actions:
        return self._failed(event, will_retry=_RETRIES.search(message_of(event)) is not None)

    def _item_started(self, event: Mapping[str, Any]) -> Actions:
        return self._item(object_in(event.get("item")), is_done=False)

    def _item_updated(self, event: Mapping[str, Any]) -> Actions:
        item = object_in(event.get("item"))
        return self._item(item, is_done=False) if item.get("type") == "todo_list" else []

    def _item_completed(self, event: Mapping[str, Any]) -> Actions:
        return self._item(object_in(event.get("item")), is_done=True)

    def _item(self, raw: Mapping[str, Any], *, is_done: bool) -> Actions:
        match raw.get("type"):
            case "error":  # Only a warning.
                return [self._note(text_in(raw.get("message")))] if is_done else []
            case "todo_list":
                return [*self._progressed(), *([] if is_done else [self._note(plan_of(raw))])]
        item = item_of(raw, self.order.earlier_attempts)
        if not is_known(item):
            self.unknown[f"item {text_in(raw.get('type')) or 'without a type'}"] += 1
            return []
        self._count_round(item)
        self.touched |= dict.fromkeys(touched_by(item) if is_done else ())
        if item["type"] == "agentMessage" and is_done:
            self.message = text_in(item.get("text"))
        return [*self._progressed(), *self._rows(item, is_done=is_done)]

    def _count_round(self, item: Mapping[str, Any]) -> None:
        """Count a tool call after a message as another round; calls in a row count as one round."""
        if not is_tool(item):
            self._is_in_round = False
        elif not self._is_in_round:
            self.rounds, self._is_in_round = self.rounds + 1, True

    # -- the end ---------------------------------------------------------------------------------------------------

    def _results(self) -> AgentOutcome:
        return AgentOutcome(
            final_message=self.message, turns_used=self.rounds, usage=self.usage, model=self.order.model
        )
