"""A slot that is lent to anybody while its worker has nothing to do, and taken back afterwards."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from agentctl.adapters.locks import locked, try_lock
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.errors import AgentctlError
from agentctl.supervision.dispatch.dispatch import carry_out, dispatch_locked
from agentctl.supervision.dispatch.idle_places import come_back
from agentctl.supervision.dispatch.slots import IDLE, place_of


class Standby:
    """The place of a worker.

    Args:
        folder: Where the environments of queued workers wait.
    """

    def __init__(self, worker: WorkerDir, root_task: TaskDir, folder: FilePath) -> None:
        self.worker, self.root_task, self.folder = worker, root_task, folder

    @contextlib.contextmanager
    def lent(self) -> Iterator[None]:
        """Lend it meanwhile; a guest that has come stays when this is over."""
        with locked(self.root_task.queue_lock):  # Places are renamed under it.
            place = self._place()
            loan = try_lock(self.root_task.slots / (place + IDLE)) if place is not None else None
        try:
            with contextlib.suppress(AgentctlError, OSError):  # Whoever dispatches next goes on.
                with locked(self.root_task.queue_lock):
                    done = dispatch_locked(self.root_task, folder=self.folder)
                carry_out(self.root_task, done, folder=self.folder)
            yield
        finally:
            if loan is not None:
                os.close(loan)

    def has_own(self) -> bool:
        """Start whoever may start, and tell whether nobody works in the place; a guest moves to a free slot first."""
        try:
            with locked(self.root_task.queue_lock):
                done = dispatch_locked(self.root_task, folder=self.folder)
                place = self._place()
                has_own = place is None or come_back(self.root_task, place)
            carry_out(self.root_task, done, folder=self.folder)
        except (AgentctlError, OSError):
            return False  # The next look tries again.
        return has_own

    def _place(self) -> str | None:
        return place_of(self.root_task, self.worker.task.id, self.worker.instance)
