"""Problems that shims report about their own work: `shim.log` of the root task."""

from __future__ import annotations

import contextlib
import os

from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import write_all
from agentctl.adapters.opening import open_plain
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import TreeDir, WorkerDir
from agentctl.errors import AgentctlError

_MOST_NOTES = 50


class Notes:
    """Writes down, once each, the problems that a worker's shim met and survived; `doctor` shows them."""

    def __init__(self, tree: TreeDir, worker: WorkerDir) -> None:
        self._tree, self._name = tree, str(worker.id)
        self._known: set[str] = set()

    def __call__(self, problem: object) -> None:
        text = str(problem)
        if text not in self._known and len(self._known) < _MOST_NOTES:
            self._known.add(text)
            write_note(self._tree, f"{self._name}: {text}")


def write_note(tree: TreeDir, text: str) -> None:
    """Append a line to the log of the shims; if that cannot be written, the line is lost."""
    line = f"{now_iso()} pid {os.getpid()} {text}\n".encode("utf-8", "backslashreplace")
    with contextlib.suppress(AgentctlError, OSError):
        if not _appended(tree.shim_log, line):
            _appended(tree.shim_log, line)  # `doctor --fix` has set the log aside, perhaps after reading it.


def _appended(path: FilePath, line: bytes) -> bool:
    """Append a line; return whether the file that has it is still the log."""
    fd = open_plain(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        write_all(fd, line)
        return os.path.samestat(os.fstat(fd), os.lstat(path))
    except FileNotFoundError:
        return False
    finally:
        os.close(fd)
