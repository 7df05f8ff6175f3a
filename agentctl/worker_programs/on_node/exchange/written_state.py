"""What a worker has written on its node, in short: whether there is news, and whether the head sees all of it.

A network file system shows each folder as it was some time ago, and each by itself: the end may be seen before the
files that were written first.
"""

from __future__ import annotations

import contextlib
import os
from binascii import crc32
from collections.abc import Mapping

from agentctl.adapters.files import AnyPath
from agentctl.adapters.opening import open_plain, read_bytes
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import LaunchDir, WorkerDir, names_in
from agentctl.errors import AgentctlError
from agentctl.lean import Any

#: Where the end of a worker, as its node tells it, says it.
WRITTEN = "written"
#: The files of a worker that grow, and those that are replaced.
OUTPUTS, LINES = ("stdout", "stderr"), ("activity", "dialogue", "turns", "conversation")
GROWING = (*OUTPUTS, *LINES)
WHOLE = ("progress", "result", "session", "spent")
#: In the folder of its messages: how many it has read.
READ = "read"
MOST_FILES = 1000
#: How deep a worker lies in the folder of its launch: node/tasks/TASK/agents/WORKER.
_LEVELS = 5


class ChangesOnNode:
    """Whether what the head copies has changed, as its node sees it; what is replaced changes the worker's folder."""

    def __init__(self, worker: WorkerDir, launch: LaunchDir) -> None:
        grow = [worker.task.events, *(getattr(worker, name) for name in GROWING)]
        self._paths = [*grow, worker.path, worker.inbox, launch.calls]
        self._seen: list[tuple[int, int] | None] = []

    def have_come(self) -> bool:
        """Return whether anything has changed since the last call."""
        before, self._seen = self._seen, [_state_of(path) for path in self._paths]
        return self._seen != before


def written_by(worker: WorkerDir) -> dict[str, int | str]:
    """Return how long each file is, or what is in it, or how many are in a folder; without those that are not there."""
    found: dict[str, int | str] = {name: _size_of(getattr(worker, name)) for name in GROWING}
    found["events"] = _size_of(worker.task.events)
    found.update((name, _mark_of(getattr(worker, name))) for name in WHOLE)
    found[READ] = _mark_of(worker.inbox / READ)
    found.update((name, _count(getattr(worker, name))) for name in ("texts", "turn_objects"))
    return {name: value for name, value in found.items() if value}


def is_all_seen(worker: WorkerDir, written: Mapping[str, Any]) -> bool:
    """Return whether what is seen of a worker from here is at least what its node says that it has written."""
    if not written:
        return True
    look_again(worker)
    seen = written_by(worker)
    return all(_is_reached(seen.get(name), wanted) for name, wanted in written.items())


def look_again(worker: WorkerDir) -> None:
    """Make NFS look again for names that were missing: it does so when the folder that lacks them is opened."""
    folders = [worker.path]
    for _ in range(_LEVELS):
        folders.append(folders[-1].parent)
    with contextlib.suppress(OSError):  # What is below one that is missing is missing, too.
        for folder in (*reversed(folders), worker.inbox):
            os.listdir(folder)


def _is_reached(seen: object, wanted: object) -> bool:
    if isinstance(seen, int) and isinstance(wanted, int):
        return seen >= wanted
    return seen == wanted


def _state_of(path: AnyPath) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def _size_of(path: AnyPath) -> int:
    try:
        fd = open_plain(path)  # Over NFS, what a stat says may be old.
    except (AgentctlError, OSError):
        return 0
    try:
        return os.fstat(fd).st_size
    finally:
        os.close(fd)


def _mark_of(path: AnyPath) -> str:
    try:
        data = read_bytes(path)
    except (AgentctlError, OSError):
        return ""
    return f"{len(data)}-{crc32(data):08x}"


def _count(folder: FilePath) -> int:
    try:
        return len(names_in(folder, MOST_FILES))
    except OSError:
        return 0
