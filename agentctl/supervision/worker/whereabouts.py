"""Whether the folders of a worker and of its tasks are still those that they were, where they were.

Who looks after a worker holds these folders open. So another folder of the same name is told apart from them, and what
was removed from what was moved, or is only out of sight (a file system that was unmounted): that proves nothing. Where
a folder is gone, nothing is written there any more, and nothing is made again.
"""

from __future__ import annotations

import os

from agentctl.adapters.clock import monotonic
from agentctl.adapters.processes import LINUX
from agentctl.adapters.taskdir import TaskDir, TreeDir, WorkerDir
from agentctl.lean import NamedTuple

#: How long a loss has to last: an editor that saves task.yaml may take it away for a moment.
_LASTS_S = 1.0
_REMOVED, _MOVED = "was removed", "was moved"
_MARK = " (deleted)"


class Loss(NamedTuple):
    """What became of the folders of a worker."""

    message: str
    #: Where its end is to be written: its folder need not be there. None if there is no such place any more.
    worker: WorkerDir | None
    #: Its task, and that of its tree, are where they were.
    has_tasks: bool = False


class Whereabouts:
    """The folders of one worker, of its task and of the root task of its tree, held open.

    Raises:
        OSError: One of them is not there.
    """

    def __init__(self, worker: WorkerDir, tree: TreeDir) -> None:
        self._worker, self._tree = worker, tree
        self._since: float | None = None
        self._task_files = {worker.task.task_file, tree.task_file}
        self._held: list[_Held] = []
        try:
            for path in dict.fromkeys((worker.path, worker.task.path, tree.path)):
                self._held.append(_Held(path))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the folders."""
        for held in self._held:
            os.close(held.fd)
        self._held = []

    def loss(self) -> Loss | None:
        """Return what became of the folders; None if all of them are there."""
        if self._are_in_place():
            return None
        own, task, *tree = self._held
        worker, found = self._worker, task.lost(self._worker.task)
        if found == _MOVED and (place := task.place()) is not None:
            return Loss(f"its task was moved to {place} while it ran", TaskDir(place).worker(worker.instance))
        if found is not None:
            return Loss("its task was removed", None)
        if any(held.lost(self._tree) for held in tree):
            return Loss(f"the task {self._tree.id} above it was removed", worker)
        found = own.lost()
        return None if found is None else Loss(f"its folder {found}", worker, has_tasks=True)

    def _are_in_place(self) -> bool:
        """Return whether all of them are known to be where they were: mostly they are, and a shim asks often.

        The path of the worker's folder leads through its task's: a folder has one name.
        """
        own, _, *tree = self._held
        try:
            for held in (own, *tree):
                found = os.stat(held.path)
                if found.st_ino != held.known.st_ino or found.st_dev != held.known.st_dev:
                    return False
            for path in self._task_files:
                os.lstat(path)
        except OSError:
            return False
        return True

    @property
    def is_in_doubt(self) -> bool:
        """Whether the last call of `lasting_loss` found a loss."""
        return self._since is not None

    def lasting_loss(self) -> Loss | None:
        """Return what became of the folders, once that has been so for a second; call it again and again."""
        loss, now = self.loss(), monotonic()
        if loss is None:
            self._since = None
            return None
        self._since = now if self._since is None else self._since
        return loss if now - self._since >= _LASTS_S else None


class _Held:
    """A folder that is held open: while it is, no other one has its inode."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.known = os.fstat(self.fd)

    def lost(self, task: TaskDir | None = None) -> str | None:
        """Return what became of it; None if it is where it was, or if that cannot be known.

        Args:
            task: It is the folder of this task, which is gone without its task.yaml as well.
        """
        try:
            if os.path.samestat(os.stat(self.path), self.known):
                return _REMOVED if task is not None and _is_missing(task.task_file) else None
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError:
            return None
        return _REMOVED if self._is_removed() else _MOVED if self.place() is not None else None

    def _is_removed(self) -> bool:
        if not LINUX:
            return True
        try:
            return os.fstat(self.fd).st_nlink == 0 or os.readlink(f"/proc/self/fd/{self.fd}").endswith(_MARK)
        except OSError:
            return False

    def place(self) -> str | None:
        """Return where it lies now; None if that cannot be told."""
        try:
            path = os.readlink(f"/proc/self/fd/{self.fd}")
            return path if os.path.samestat(os.stat(path), self.known) else None
        except OSError:
            return None


def _is_missing(path: str) -> bool:
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        pass
    return False
