"""The place of a worker that has nothing to do: lent to anybody, and taken back before the worker goes on."""

from __future__ import annotations

import os

from agentctl.adapters.locks import locked, try_lock
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.supervision.dispatch.dispatch import carry_out, dispatch_locked
from agentctl.supervision.dispatch.idle_places import come_back
from agentctl.supervision.dispatch.slots import IDLE, place_of


class Standby:
    """The place of a worker that is kept, or only waits for others to end.

    Args:
        folder: Where the environments of queued workers wait; a shim, whose own environment is empty, was told.
    """

    def __init__(self, worker: WorkerDir, root_task: TaskDir, folder: FilePath | None = None) -> None:
        self.worker, self.root_task, self.folder = worker, root_task, folder
        self._loan: int | None = None

    def lend(self) -> None:
        """Lend the place, if the worker has one, and start who may have it now."""
        with locked(self.root_task.queue_lock):  # A guest's place is moved, and renamed, under it.
            place = self._place()
            if place is not None and self._loan is None:
                self._loan = try_lock(self.root_task.slots / (place + IDLE))
            done = dispatch_locked(self.root_task, folder=self.folder)
        carry_out(self.root_task, done, folder=self.folder)

    def end_loan(self) -> None:
        """Let no new guest in; one that has come stays."""
        if self._loan is not None:
            os.close(self._loan)
            self._loan = None

    def has_own(self) -> bool:
        """Start whoever may start, and tell whether nobody works in the place; a guest moves to a free slot first."""
        with locked(self.root_task.queue_lock):
            done = dispatch_locked(self.root_task, folder=self.folder)
            place = self._place()
            has_own = place is None or come_back(self.root_task, place)
        carry_out(self.root_task, done, folder=self.folder)
        return has_own

    def _place(self) -> str | None:
        return place_of(self.root_task, self.worker.id)
