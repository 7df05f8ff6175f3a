"""The senders that a process of the person starts while it is there: a wait, or a screen.

No thread waits for their end: CPython (seen with 3.11.2) may crash at its own, while a thread comes back from a system
call.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from agentctl.adapters.taskdir import TaskDir, TreeDir
from agentctl.operations.notify.applied_targets import rearm
from agentctl.supervision.notify.switch import Switch
from agentctl.supervision.worker.environment import store_folder, switch_of

#: Those of every tree that have not been collected yet: a server waits again and again.
_started: set[int] = set()


class Senders:
    """Sees to it that a tree of tasks has a sender whenever there may be something to tell.

    Raises:
        AgentctlError, OSError: There is no place in memory for its switch.
    """

    def __init__(self, tree: TreeDir) -> None:
        rearm(tree)
        self._switch = Switch(tree, store_folder())

    @property
    def are_wanted(self) -> bool:
        """Return whether anybody is to be told of this tree."""
        return self._switch.is_there

    def look(self, tasks: Iterable[TaskDir]) -> None:
        """Have a sender look if one is due by any of these tasks of the tree; for about once a second."""
        if self.are_due(tasks):
            self.start()

    def are_due(self, tasks: Iterable[TaskDir]) -> bool:
        """Return whether a sender is due by any of these tasks; it does not say so again."""
        _collect()
        due = [task for task in tasks if self._switch.is_due(task)]
        return bool(due)

    def start(self) -> None:
        """Start a sender, unless the tree has one."""
        pid = self._switch.start()
        if pid is not None:
            _started.add(pid)


def is_armed(tree: TreeDir) -> bool:
    """Return whether it was put down who is to be told of a tree of tasks.

    Raises:
        AgentctlError, OSError: There is no place in memory for that.
    """
    return switch_of(store_folder(), tree.nonce()).exists()


def _collect() -> None:
    for pid in list(_started):
        if _has_ended(pid):
            _started.discard(pid)


def _has_ended(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG) != (0, 0)
    except ChildProcessError:
        return True
