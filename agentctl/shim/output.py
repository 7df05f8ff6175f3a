"""A worker's output: how much there is, and whether the worker is stalled (has written none for a long time)."""

from __future__ import annotations

import os

from agentctl.adapters.taskdir import WorkerDir


class Output:
    """The output files of a worker, measured about once a second."""

    def __init__(self, worker: WorkerDir, stall_s: float, now: float) -> None:
        self._worker, self._stall_s = worker, stall_s
        self._size, self._quiet_since = -1, now
        self.is_stalled = False

    def size(self) -> int:
        """Return the number of bytes written so far."""
        return sum(_size_of(path) for path in (self._worker.stdout, self._worker.stderr))

    def has_turned(self, now: float, size: int, *, stands: bool) -> bool:
        """Return whether it has stalled or resumed since the last look: `is_stalled` says which.

        Args:
            stands: It waits, is paused or is being stopped, and so does not count as stalled.
        """
        if size != self._size or stands:
            self._size, self._quiet_since = size, now
        was_stalled, self.is_stalled = self.is_stalled, now - self._quiet_since >= self._stall_s
        return was_stalled != self.is_stalled


def _size_of(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
