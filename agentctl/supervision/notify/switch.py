"""Has a sender started when there may be something to tell; kept by the shim of an armed tree, or by a wait.

The switch of a tree is a file in memory, beside the environments of the queue, which neither a clone nor a sandbox can
write. It holds all that a sender needs (`armed`), and is made by commands of the person, who alone define targets. A
shim that does not find it loads nothing of this wing. Whoever is there (a shim, a wait) starts a sender, unless the
tree has one.
"""

from __future__ import annotations

import contextlib
import os
import time

from agentctl.adapters import processes
from agentctl.adapters.clock import monotonic
from agentctl.adapters.detached import start_detached
from agentctl.adapters.locks import hold_alive
from agentctl.adapters.opening import open_plain
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import TaskDir, TreeDir
from agentctl.domain import events as ev
from agentctl.errors import AgentctlError
from agentctl.supervision import failpoints
from agentctl.supervision.life.strangers import SHIM_SCRIPT, TELL, note_guardian
from agentctl.supervision.worker.control import name_holder
from agentctl.supervision.worker.environment import switch_of

#: The events after which a sender has to look. Ends of other kinds may end the last worker: a shim that leaves has one.
_MARKS = tuple(b'"type":"' + kind.encode() + b'"' for kind in (ev.BLOCKED, ev.FAILED, ev.NEAR_LIMIT, ev.ASKED))
_PIECE = 1 << 16
#: While somebody is there, a sender comes at least that often.
_AGAIN_S = 60.0
_FAILPOINT = "AGENTCTL_FAILPOINT"
#: The descriptor by which a sender gets its lock.
LOCK_FD = 3


class Switch:
    """The switch of a tree of tasks, looked at again and again.

    Args:
        folder: Where the environments of queued workers wait.
    """

    def __init__(self, tree: TreeDir, folder: FilePath) -> None:
        self._tree, self._folder = tree, folder
        self._file = switch_of(folder, tree.nonce())
        self._read: dict[str, int] = {}
        #: When it starts a sender without news again: the files say when one came last, and a worker may change them.
        self._again = 0.0

    @property
    def is_there(self) -> bool:
        """Return whether anybody is to be told of this tree."""
        return self._file.exists()

    def look(self, task: TaskDir) -> int | None:
        """Have a sender look if one is due by the log of a task of the tree; for about once a second.

        Returns the pid of the sender that was started.
        """
        return self.start() if self.is_due(task) else None

    def is_due(self, task: TaskDir) -> bool:
        """Return whether a sender is due: by what was added to the log of a task since the last look, or by time."""
        if not self._file.exists():
            return False
        is_due = _has_news(task, self._read)
        if monotonic() >= self._again and _is_long_ago(self._tree):
            is_due, self._again = True, monotonic() + _AGAIN_S
        return is_due

    def start(self) -> int | None:
        """Start a sender, unless the tree has one; return its pid."""
        return see_to_sender(self._tree, self._folder)

    def tell(self) -> None:
        """Have a sender look: something has just ended."""
        if self._file.exists():
            see_to_sender(self._tree, self._folder)


def _has_news(task: TaskDir, read: dict[str, int]) -> bool:
    """Return whether the log of a task has grown by an event that may be a notice; at the first look, `True`.

    Args:
        read: By task, how much of its log was looked at; brought up to date.
    """
    try:
        size, before = os.stat(task.events).st_size, read.get(task.id)
        has_any = before is None or (size > before and _has_mark(task.events, before, size))
        read[task.id] = size  # Only now: what could not be read is looked at again.
        return has_any
    except (AgentctlError, OSError):
        return False


def _has_mark(log: FilePath, start: int, end: int) -> bool:
    """Return whether what was added has a mark; so much that it is not worth a look counts as one."""
    if end - start > _PIECE:
        return True
    fd = open_plain(log)
    try:
        data = os.pread(fd, end - start, start)
    finally:
        os.close(fd)
    return any(mark in data for mark in _MARKS)


def _is_long_ago(tree: TreeDir) -> bool:
    """Return whether the last sender came a minute ago or more: it may have been killed, have failed, or kept quiet."""
    try:
        return not 0 <= time.time() - os.stat(tree.sender).st_mtime < _AGAIN_S
    except OSError:
        return True


def see_to_sender(tree: TreeDir, folder: FilePath) -> int | None:
    """Start the sender of a tree of tasks, unless it has one, which looks once more before it leaves.

    The lock that proves its life is taken here and handed over, and it is named at once: so there are never two, and no
    sweep takes it for a process of a worker.

    Args:
        folder: Where the switch is.

    Returns:
        Its pid, which the caller collects some time; None if none was started.
    """
    with contextlib.suppress(AgentctlError, OSError):  # No process left: the next one who is there tries.
        lock = hold_alive(tree.sender)
        if lock is not None:
            try:
                return _start(tree, folder, lock)
            finally:
                os.close(lock)
    return None


def _start(tree: TreeDir, folder: FilePath, lock: int) -> int:
    name = failpoints.armed() or ""
    environ = {_FAILPOINT: name} if name.startswith("notify.") else {}
    pid = start_detached([SHIM_SCRIPT, TELL, folder, tree.path], environ, {LOCK_FD: lock})
    me = processes.identify(pid)
    if me is not None:
        note_guardian(tree, me)
        name_holder(lock, me)
    return pid
