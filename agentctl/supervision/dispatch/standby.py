"""Lends the place of an idle worker to any other worker, and takes it back before the idle one goes on.

The lender has other duties, a cancel above all. So nothing here waits long for the queue's lock, and nothing fails:
what cannot be done now is done at the next look.
"""

from __future__ import annotations

import contextlib
import os

from agentctl.adapters.locks import locked
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import TreeDir, WorkerDir
from agentctl.errors import AgentctlError
from agentctl.supervision.dispatch.dispatch import complete_dispatch, dispatch_locked
from agentctl.supervision.dispatch.idle_places import come_back
from agentctl.supervision.dispatch.slots import IDLE, lend

#: The queue's lock is mostly held for some milliseconds.
_PATIENCE_S = 0.1


class Standby:
    """The place of a worker that is kept, or only waits for others to end.

    Args:
        folder: Where the environments of queued workers wait. A shim has this from its order: its own is empty.
    """

    def __init__(self, worker: WorkerDir, tree: TreeDir, folder: FilePath | None = None) -> None:
        self.worker, self.tree, self.folder = worker, tree, folder
        self._loan: int | None = None

    def lend(self) -> bool:
        """Lend the worker's place, and start workers that may have it; False if this must wait."""
        with contextlib.suppress(AgentctlError, OSError):
            with self._queue_locked():
                if self._loan is None:
                    self._loan = lend(self.tree, IDLE, self.worker.id)
                done = dispatch_locked(self.tree, folder=self.folder)
            complete_dispatch(self.tree, done, folder=self.folder)
            return self._loan is not None
        return False

    def end_loan(self) -> None:
        """End the loan: no new guest gets in, but a present one stays."""
        if self._loan is not None:
            os.close(self._loan)
            self._loan = None

    def has_own(self) -> bool:
        """Start the workers that may start; return whether the place has no guest. A guest moves to a free slot first.

        Also False if that cannot be said now: the queue's lock is held, or the disk fails.
        """
        with contextlib.suppress(AgentctlError, OSError):
            with self._queue_locked():
                done = dispatch_locked(self.tree, folder=self.folder)
                has_own = come_back(self.tree, self.worker.id)
            complete_dispatch(self.tree, done, folder=self.folder)
            return has_own
        return False

    def _queue_locked(self) -> locked:
        return locked(self.tree.queue_lock, limit_s=_PATIENCE_S)
