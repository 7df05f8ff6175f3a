"""When the tasks of a root have to be listed again: a folder's time does not tell of every change."""

from __future__ import annotations

import os
import time

from agentctl.adapters.clock import monotonic
from agentctl.adapters.taskdir import Root, TaskDir
from agentctl.adapters.watch import SAFETY_S
from agentctl.errors import StorageError

#: The kernel's clock for files ticks no more seldom than this.
_TICK_NS = 20_000_000
#: No task takes so long to be made.
_MAKING_S = 5.0


class ListingTimes:
    """Knows whether tasks may have come or gone since the last listing."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._version: object = None
        self._next = 0.0
        self._is_settled = True
        #: Whether names may have come or gone before the last listing; otherwise it was made to be safe.
        self.has_changed = False

    @property
    def is_there(self) -> bool:
        """Whether the folder was there at the last look."""
        return self._version is not None

    def is_due(self) -> bool:
        """Return whether to list it now; it is then taken as listed."""
        try:
            found = os.stat(self._root.tasks)
        except OSError:
            version, age_ns = None, _TICK_NS
        else:
            version, age_ns = (found.st_mtime_ns, found.st_ino), time.time_ns() - found.st_mtime_ns
        if version == self._version and monotonic() < self._next:
            return False
        self.has_changed = version != self._version or not self._is_settled
        # After a change within the same tick the folder would look as it does now.
        self._version, self._is_settled = version, age_ns >= _TICK_NS
        self._next = monotonic() + SAFETY_S if self._is_settled else 0.0
        return True

    def task_ids(self) -> list[str]:
        """Return the tasks that there are; while one is still being made, the next look lists them again.

        Its folder was made before it became a task: once it has, nothing changes any more where the tasks lie.
        """
        if any(_is_young(self._root.task(name)) for name in self._root.unmade_task_ids()):  # Before they are listed.
            self.expire()
        return self._root.task_ids()

    @property
    def at_most_s(self) -> float:
        """How long to sleep before the next look at most: what happens within a folder that is new wakes nobody."""
        return SAFETY_S if self._next else _TICK_NS / 1e9

    def expire(self) -> None:
        """Have the next look list it, whatever its time says."""
        self._next = 0.0


def is_being_made(task: TaskDir) -> bool:
    """Return whether a task may still lack something: its log is made last of all."""
    try:
        return _is_young(task) and not task.events.exists()
    except StorageError:
        return False  # Whoever reads it says what is in the way.


def _is_young(task: TaskDir) -> bool:
    try:
        return time.time() - os.stat(task.path).st_mtime < _MAKING_S
    except OSError:
        return False
