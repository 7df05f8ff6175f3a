"""Reads and writes `worktree.json`, whose paths below the root are relative to it on disk."""

from __future__ import annotations

from collections.abc import Callable

from agentctl.adapters.files import read_json, read_known, to_json, write_whole
from agentctl.adapters.taskdir import WorkerDir
from agentctl.lean import Any
from agentctl.supervision.worker.relative_paths import from_disk, on_disk

#: The keys of paths; so is `patch` in `changes`.
PATHS = ("path", "repository", "commonDir", "gitDir", "cwd")


def read_record(worker: WorkerDir) -> dict[str, Any] | None:
    """Return the record of a worker's worktree, with whole paths; None if it has none.

    Raises:
        Damaged: It cannot be understood.
    """
    record = read_json(worker.worktree)
    return None if record is None else whole_record(record, worker.task.root.path)


def known_record(worker: WorkerDir) -> dict[str, Any]:
    """Return the record of a worker's worktree, with whole paths; {} if it has none that can be understood.

    Raises:
        StorageError: It cannot be read, so it is not known whether there is one.
    """
    return whole_record(read_known(worker.worktree), worker.task.root.path)


def write_record(worker: WorkerDir, record: dict[str, Any]) -> None:
    """Write the record of a worker's worktree."""
    root = worker.task.root.path
    write_whole(worker.worktree, to_json(with_paths(record, lambda path: on_disk(path, root))))


def whole_record(record: dict[str, Any], root: str) -> dict[str, Any]:
    """Return a record as it is on disk with whole paths, as of where the root lies."""
    return with_paths(record, lambda path: from_disk(path, root))


def with_paths(record: dict[str, Any], change: Callable[[object], object]) -> dict[str, Any]:
    """Return a record whose paths are changed."""
    changed = {**record, **{key: change(record[key]) for key in PATHS if key in record}}
    changes = record.get("changes")
    if isinstance(changes, dict) and "patch" in changes:
        changed["changes"] = {**changes, "patch": change(changes["patch"])}
    return changed
