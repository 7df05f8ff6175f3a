"""What conversations with `codex app-server` and with `codex exec` have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentctl.domain.activity.row import Row, RowType
from agentctl.domain.states import Reason
from agentctl.drivers.codex.errors import message_of, reason_of, telling
from agentctl.drivers.codex.items import row_id, row_of
from agentctl.drivers.codex.threads import AgentThreads
from agentctl.drivers.complaints import Complaining
from agentctl.drivers.dialogue import Action, AgentOutcome, Note, Progress, Retrying, StopProgram
from agentctl.drivers.order import Order
from agentctl.drivers.values import bounded, parse_line

Actions = list[Action]


class CodexConversation(Complaining):
    """The base of both dialogues: notes, retries, unknown lines, and the outcome."""

    #: The prefix of the ids of its own rows.
    ROWS = ""
    MOST_COMPLAINTS = 5

    def __init__(self, order: Order, threads: AgentThreads) -> None:
        super().__init__()
        self.order, self.threads = order, threads
        self.unknown: Counter[str] = Counter()
        self.touched: dict[str, None] = {}
        #: The error after which Codex is retrying; None as soon as it makes progress.
        self.retried: Mapping[str, Any] | None = None
        self._notes = 0

    def received(self, line: bytes) -> Sequence[Action]:
        """Handle a line of the program's output."""
        message = parse_line(line)
        if message is None:
            self.unknown["line that is not a JSON object"] += 1
            return []
        return self._handle(message)

    def _handle(self, message: Mapping[str, Any]) -> Actions:
        """Return the actions that a message causes."""
        raise NotImplementedError

    def complaint_in(self, line: bytes) -> str:
        """Return a line without its colours; empty if it explains no end."""
        return telling(line)

    def _failed(self, error: Mapping[str, Any], parent: str | None = None, *, will_retry: bool) -> Actions:
        """Return the actions for an error that is final or after which Codex retries; none for any other."""
        reason, message = reason_of(error), message_of(error)
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
        row = row_of(item, is_done=is_done, parent=parent)
        return [*actions, Note(row)] if row is not None else actions

    def _note(self, text: str, parent: str | None = None) -> Note:
        self._notes += 1
        name = row_id(f"{self.ROWS}note:{self._notes}", self.order.earlier_attempts)
        return Note(Row(RowType.NOTE, name, parent=parent, text=bounded(text)))

    def _unknown_note(self) -> Actions:
        """Return the note that counts unknown lines; none if all were known."""
        if not self.unknown:
            return []
        text = "unknown: " + ", ".join(f"{what} ({count})" for what, count in sorted(self.unknown.items()))
        row = Row(RowType.NOTE, row_id(f"{self.ROWS}unknown", self.order.earlier_attempts), text=text)
        return [Note(row._replace(detail=dict(self.unknown)))]

    def _outcome(self, reason: Reason | None, message: str | None) -> AgentOutcome:
        return self._results()._replace(
            reason=reason,
            message=message,
            session=self.threads.root or self.order.resume,
            touched_files=list(self.touched),
        )

    def _results(self) -> AgentOutcome:
        """Return the agent's results: its last message, its rounds, its usage and its model."""
        raise NotImplementedError


def noted(rows: Iterable[Row]) -> Actions:
    """Return the actions that append rows to the activity."""
    return [Note(row) for row in rows]
