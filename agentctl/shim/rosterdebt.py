"""The roster rows that a shim still owes to task.yaml: paid when it has time, at most twice a second.

The roster is a cache of the log; a shim that is killed in debt loses nothing.
"""

from __future__ import annotations

import contextlib

from agentctl.adapters.clock import monotonic
from agentctl.adapters.roster import Row, update
from agentctl.adapters.taskdir import AgentDir, TaskDir
from agentctl.domain.states import Status
from agentctl.errors import AgentctlError
from agentctl.supervision.endings import read_decision

_LATEST_S = 0.5


class RosterDebt:
    """Rows by task, and since when they are owed."""

    def __init__(self) -> None:
        self._rows: dict[str, tuple[TaskDir, dict[str, Row]]] = {}
        self._due: float | None = None

    def add(self, agent: AgentDir, row: Row) -> None:
        """Owe one row."""
        task = agent.task
        self._rows.setdefault(task.id, (task, {}))[1][agent.instance] = row
        if self._due is None:
            self._due = monotonic() + _LATEST_S

    def add_ended(self, agent: AgentDir, agent_type: str = "command") -> None:
        """Owe the row of a worker whose end is decided."""
        with contextlib.suppress(AgentctlError):
            decision = read_decision(agent)
            self.add(agent, Row(agent_type, Status(decision["status"]), decision.get("reason")))

    def due(self) -> float | None:
        """Return when to pay, or None."""
        return self._due

    def pay_if_due(self) -> None:
        """Pay when it is time."""
        if self._due is not None and monotonic() >= self._due:
            self.pay_all()

    def pay_all(self) -> None:
        """Write the rows; what cannot be written is told by the log all the same."""
        rows, self._rows, self._due = self._rows, {}, None
        for task, changed in rows.values():
            with contextlib.suppress(AgentctlError, OSError):
                update(task, changed)
