"""A conversation with `codex exec --json`: one turn, in which Codex asks nothing and is told nothing."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentctl.domain.activity.row import Row, RowType
from agentctl.domain.states import Reason
from agentctl.drivers.codex.errors import INTERRUPTED, Ending, early_end, message_of, reason_of, telling
from agentctl.drivers.codex.execitems import item_of, plan_of
from agentctl.drivers.codex.items import (
    as_dict,
    as_number,
    as_text,
    bounded,
    is_known,
    is_tool,
    row_id,
    row_of,
    touched_by,
)
from agentctl.drivers.codex.threads import Threads
from agentctl.drivers.codex.wire import object_in
from agentctl.drivers.dialogue import Action, HangUp, Note, Outcome, Progress, Retrying, Say, SessionIs, Stop
from agentctl.drivers.order import Order

_STDERR_LINES = 5
#: How an error reads after which Codex tries again; any other is told once more by the end of the turn.
_RETRIES = re.compile(r"reconnecting|retrying", re.IGNORECASE)
_SPENT = ("input", "output", "cached")
_Actions = list[Action]


class ExecDialogue:
    """One run of one agent."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.threads = Threads()
        self.complaints: deque[str] = deque(maxlen=_STDERR_LINES)
        self.unknown: Counter[str] = Counter()
        self.touched: dict[str, None] = {}
        self.rounds = 0
        self.usage: dict[str, int] = {}
        self.message: str | None = None
        #: How the turn ended, once that is told.
        self.ending: Ending | None = None
        self.retried: Mapping[str, Any] | None = None
        #: What the thread had used up before; None where nobody knows: then nobody knows either what this run uses.
        self._before = order.used_before if order.resume else dict.fromkeys(_SPENT, 0)
        self._is_in_round = False
        self._notes = 0
        self._handlers: dict[str, Callable[[Mapping[str, Any]], _Actions]] = {
            "error": self._error,
            "item.completed": self._item_completed,
            "item.started": self._item_started,
            "item.updated": self._item_updated,
            "thread.started": self._thread_started,
            "turn.completed": self._turn_completed,
            "turn.failed": self._turn_failed,
            "turn.started": self._turn_started,
        }

    # -- what happens beside the program's output ------------------------------------------------------------------

    def begin(self) -> Sequence[Action]:
        """Say the prompt; Codex reads its input to the end before it begins."""
        return [Say(self.order.prompt.encode(errors="replace")), HangUp()]

    def complained(self, line: bytes) -> Sequence[Action]:
        """Keep what stderr tells: it explains an end that nothing else explains."""
        text = telling(line)
        if text:
            self.complaints.append(bounded(text))
        return ()

    def answered(self, key: str, answer: str, reason: str = "", *, by_rule: bool = False) -> Sequence[Action]:
        """It asks nothing."""
        return ()

    def told(self, text: str, *, interrupt: bool) -> Sequence[Action]:
        """It takes no messages: its input is closed."""
        return ()

    def interrupted(self) -> Sequence[Action]:
        """It has no protocol of its own for this: the host sends SIGINT, after which no end is told."""
        self.ending = self.ending or INTERRUPTED
        return ()

    def ended(self, code: int) -> Outcome:
        """Say how it ended: as the turn did, else what the exit tells."""
        ending = self.ending or early_end(
            code, "; ".join(self.complaints), self.retried, has_begun=self.threads.root is not None
        )
        return self._outcome(*ending)

    # -- what the program says -------------------------------------------------------------------------------------

    def received(self, line: bytes) -> Sequence[Action]:
        """Take an event."""
        event = object_in(line)
        if event is None:
            self.unknown["line that is no JSON object"] += 1
            return []
        kind = as_text(event.get("type"))
        handler = self._handlers.get(kind)
        if handler is None:
            self.unknown[f"event {kind or 'without a type'}"] += 1
            return []
        return handler(event)

    def _thread_started(self, event: Mapping[str, Any]) -> _Actions:
        thread = as_text(event.get("thread_id"))
        if not thread:
            return []
        self.threads.root = thread
        return [SessionIs(thread, self.order.model, self._before)]

    def _turn_started(self, _: Mapping[str, Any]) -> _Actions:
        return []

    def _turn_completed(self, event: Mapping[str, Any]) -> _Actions:
        self.ending = self.ending or (None, None)
        return [*self._used(as_dict(event.get("usage"))), *self._told_unknown()]

    def _used(self, told: Mapping[str, Any]) -> _Actions:
        """Take the tokens of the whole thread, all its earlier runs included."""
        thread = self.threads.root
        if not told or thread is None or self._before is None:
            return []
        whole, cached = as_number(told.get("input_tokens")), as_number(told.get("cached_input_tokens"))
        counts = (max(0, whole - cached), as_number(told.get("output_tokens")), cached)
        used = dict(zip(_SPENT, counts, strict=True))
        self.usage = {key: max(0, value - as_number(self._before.get(key))) for key, value in used.items()}
        row = Row(RowType.USAGE, row_id(f"usage:{thread}", self.order.earlier_attempts), detail=self.usage)
        return [Note(row), SessionIs(thread, self.order.model, used)]

    def _turn_failed(self, event: Mapping[str, Any]) -> _Actions:
        error = as_dict(event.get("error"))
        self.ending = self.ending or (reason_of(error), message_of(error))
        return [self._note(message_of(error)), *self._told_unknown()]

    def _error(self, event: Mapping[str, Any]) -> _Actions:
        reason, message = reason_of(event), message_of(event)
        if reason is Reason.AUTH:
            self.retried = event
            return [self._note(message), Stop(self._outcome(reason, message))]
        if _RETRIES.search(message):
            self.retried = event
            return [self._note(message), Retrying(reason, message)]
        return []

    def _item_started(self, event: Mapping[str, Any]) -> _Actions:
        return self._item(as_dict(event.get("item")), is_done=False)

    def _item_updated(self, event: Mapping[str, Any]) -> _Actions:
        item = as_dict(event.get("item"))
        return self._item(item, is_done=False) if item.get("type") == "todo_list" else []

    def _item_completed(self, event: Mapping[str, Any]) -> _Actions:
        return self._item(as_dict(event.get("item")), is_done=True)

    def _item(self, told: Mapping[str, Any], *, is_done: bool) -> _Actions:
        match told.get("type"):
            case "error":  # A mere warning.
                return [self._note(as_text(told.get("message")))] if is_done else []
            case "todo_list":
                return [*self._progressed(), *([] if is_done else [self._note(plan_of(told))])]
        item = item_of(told, self.order.earlier_attempts)
        if not is_known(item):
            self.unknown[f"item {as_text(told.get('type')) or 'without a type'}"] += 1
            return []
        self._count_round(item)
        self.touched |= dict.fromkeys(touched_by(item) if is_done else ())
        if item["type"] == "agentMessage" and is_done:
            self.message = as_text(item.get("text"))
        return [*self._progressed(), *self._rows(item, is_done=is_done)]

    def _rows(self, item: Mapping[str, Any], *, is_done: bool) -> _Actions:
        actions: _Actions = []
        if item.get("type") == "collabAgentToolCall":
            actions += [Note(row) for row in self.threads.told_by_parent(item, is_done=is_done)]
            if item.get("tool") == "spawnAgent" and item.get("status") != "failed":
                return actions  # The sub-agent's own row tells of it.
        row = row_of(item, is_done=is_done, parent=None)
        return [*actions, Note(row)] if row is not None else actions

    def _count_round(self, item: Mapping[str, Any]) -> None:
        """Count a tool after a word as another round; tools without a word between them may be of one or of several."""
        if not is_tool(item):
            self._is_in_round = False
        elif not self._is_in_round:
            self.rounds, self._is_in_round = self.rounds + 1, True

    # -- the end ---------------------------------------------------------------------------------------------------

    def _outcome(self, reason: Reason | None, message: str | None) -> Outcome:
        return Outcome(
            reason=reason,
            message=message,
            final_message=self.message,
            turns_used=self.rounds,
            usage=self.usage,
            model=self.order.model,
            session=self.threads.root or self.order.resume,
            touched_files=list(self.touched),
        )

    def _told_unknown(self) -> _Actions:
        if not self.unknown:
            return []
        told = ", ".join(f"{what} ({count})" for what, count in sorted(self.unknown.items()))
        row = Row(RowType.NOTE, row_id("exec-unknown", self.order.earlier_attempts), text=f"not known: {told}")
        return [Note(row._replace(detail=dict(self.unknown)))]

    def _progressed(self) -> _Actions:
        was_retrying, self.retried = self.retried is not None, None
        return [Progress()] if was_retrying else []

    def _note(self, text: str) -> Note:
        self._notes += 1
        name = row_id(f"exec-note:{self._notes}", self.order.earlier_attempts)
        return Note(Row(RowType.NOTE, name, text=bounded(text)))
