"""Reads and writes `worktree.json`, whose paths below the root are relative to it on disk."""

from __future__ import annotations

from collections.abc import Callable

from agentctl.adapters.files import read_json, read_known, to_json, write_whole
from agentctl.adapters.taskdir import WorkerDir
from agentctl.lean import Any
from agentctl.supervision.worker.relative_paths import from_disk, on_disk

#: The keys of paths; so is `patch` in `changes`.
PATHS = ("path", "repository", "commonDir", "gitDir", "cwd")
_TYPES: dict[str, type] = {**dict.fromkeys((*PATHS, "branch", "base"), str), "removed": dict, "changes": dict}
_TYPES_OF_CHANGES: dict[str, type] = {"patch": str, "size": int, "sha256": str, "fileCount": int, "error": str}


def read_record(worker: WorkerDir) -> dict[str, Any] | None:
    """Return the record of a worker's worktree, with whole paths; None if it has none.

    Raises:
        Damaged: It cannot be understood.
    """
    record = read_json(worker.worktree)
    return None if record is None else whole_record(record, worker.task.root.path)


def known_record(worker: WorkerDir) -> dict[str, Any]:
    """Return the record of a worker's worktree, with whole paths; {} if it has none that can be understood.

    What is of another type in it than it must be is left out: a clone may bring anything in its place.

    Raises:
        StorageError: It cannot be read, so it is not known whether there is one.
    """
    record = _of_types(read_known(worker.worktree), _TYPES)
    if "changes" in record:
        record["changes"] = _of_types(record["changes"], _TYPES_OF_CHANGES)
    return whole_record(record, worker.task.root.path)


def _of_types(value: dict[str, Any], types: dict[str, type]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key not in types or type(item) is types[key]}


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
