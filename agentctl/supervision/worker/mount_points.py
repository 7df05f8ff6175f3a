"""Empty folders that the sandbox of an agent program leaves behind: which of them are removed, and when.

Codex's sandbox makes a folder where there is none, so that it can mount something over it and no command can make one.
It removes it after the command; it cannot where it is killed. Which of them are not the program's is written down
before it starts, since nobody can tell afterwards. They are removed before the worker's end is decided, by whoever
decides it: its host may be gone.
"""

from __future__ import annotations

import contextlib
import os

from agentctl.adapters.files import read_known, to_json, write_whole
from agentctl.adapters.processes import is_mounted_over
from agentctl.adapters.taskdir import WorkerDir
from agentctl.errors import AgentctlError

#: The names that Codex's sandbox protects in each folder in which it lets commands write.
_NAMES = (".agents", ".aws", ".codex", ".git")


def note_mount_points(worker: WorkerDir, folder: str) -> None:
    """Write down which names are free in a worker's working folder and in its outbox, before its program starts."""
    clear_mount_points(worker)  # An earlier attempt may have been killed.
    places = (folder, os.path.realpath(worker.outbox))
    free = {place: [name for name in _NAMES if not os.path.lexists(f"{place}/{name}")] for place in places}
    write_whole(worker.mount_points, to_json({"free": free}), durable=False)


def clear_mount_points(worker: WorkerDir) -> None:
    """Remove the empty folders that have appeared since the start, if nothing is mounted there.

    What cannot be read or removed stays: no end waits for it.
    """
    with contextlib.suppress(AgentctlError, OSError):
        if worker.mount_points.exists():
            for path in _free(worker):
                _clear(path)
            os.unlink(worker.mount_points)


def _free(worker: WorkerDir) -> list[str]:
    free = read_known(worker.mount_points).get("free")
    return [
        f"{place}/{name}"
        for place, names in (free.items() if isinstance(free, dict) else ())
        for name in _NAMES
        if isinstance(names, list) and name in names
    ]


def _clear(path: str) -> None:
    with contextlib.suppress(OSError):
        # Removing it would take the wall from the sandbox of another worker in the same folder.
        if not os.path.islink(path) and not os.listdir(path) and not is_mounted_over(path):
            os.rmdir(path)
