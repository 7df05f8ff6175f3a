"""Whether anything has changed in files and folders, by what the file system says of them."""

from __future__ import annotations

import os
from collections.abc import Sequence

from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import LaunchDir, WorkerDir

_Seen = tuple[int, int]


class Changes:
    """The files and folders that are looked at, of which some may not be there."""

    def __init__(self, paths: Sequence[FilePath]) -> None:
        self._paths = paths
        self._seen: list[_Seen | None] = []

    def have_come(self) -> bool:
        """Return whether any has changed since the last call."""
        before, self._seen = self._seen, [_look_at(path) for path in self._paths]
        return self._seen != before


def changes_on_node(worker: WorkerDir, launch: LaunchDir) -> Changes:
    """Return what the head looks at, as its node sees it: the other files are replaced in the worker's folder."""
    grow = (worker.task.events, worker.stdout, worker.stderr, worker.activity, worker.dialogue, worker.turns)
    return Changes([*grow, worker.path, worker.inbox, launch.calls])


def _look_at(path: FilePath) -> _Seen | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns
