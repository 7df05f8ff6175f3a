"""The roster rows that a shim still owes to task.yaml: written later, and not just after another shim wrote its own.

The roster is a cache of the log, so a shim that is killed while it owes rows loses nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from agentctl.adapters.clock import monotonic
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.domain.states import Status
from agentctl.errors import AgentctlError
from agentctl.supervision.worker.endings import Decision, read_decision

_LATEST_S = 0.5
#: How often a shim lets others go first. Even with many shims the file is written about twice a second.
_MOST_DELAYS = 3


class RosterDebt:
    """The owed rows by task, and when they are due."""

    def __init__(self) -> None:
        self._rows: dict[str, tuple[TaskDir, dict[str, tuple[str, Status, str | None]]]] = {}
        self._due: float | None = None
        self._delays = 0

    def add(self, worker: WorkerDir, agent_type: str, status: Status, reason: str | None = None) -> None:
        """Add one row to be written later."""
        task = worker.task
        self._rows.setdefault(task.id, (task, {}))[1][worker.instance] = (agent_type, status, reason)
        if self._due is None:
            self._due = monotonic() + _LATEST_S

    def add_ended(self, worker: WorkerDir, agent_type: str = "command", decision: Decision | None = None) -> None:
        """Add the row of a worker whose end is decided; without `decision`, it is read from disk."""
        with contextlib.suppress(AgentctlError):
            decision = decision or read_decision(worker)
            self.add(worker, agent_type, decision.status, decision.reason)

    def due(self) -> float | None:
        """Return when the rows are due; None if there are none."""
        return self._due

    def pay_if_due(self, is_in_place: Callable[[], bool]) -> None:
        """Write the rows if they are due; forget them where the task is not in its place any more."""
        if self._due is None or monotonic() < self._due:
            return
        if not is_in_place():
            self.forget()
            return
        from agentctl.adapters.taskyaml.roster import was_just_written

        if self._delays < _MOST_DELAYS and any(was_just_written(task, _LATEST_S) for task, _ in self._rows.values()):
            self._delays += 1
            self._due = monotonic() + _LATEST_S
        else:
            self.pay_all()

    def forget(self) -> None:
        """Owe nothing any more."""
        self._rows, self._due, self._delays = {}, None, 0

    def pay_all(self) -> None:
        """Write all rows; what cannot be written is in the log all the same."""
        from agentctl.adapters.taskyaml.roster import RosterRow, update  # Imported only now: nobody waits for it.

        rows = self._rows
        self.forget()
        for task, changed in rows.values():
            with contextlib.suppress(AgentctlError, OSError):
                update(task, {instance: RosterRow(*row) for instance, row in changed.items()})
