"""The worktrees of workers: what was changed in them, as it was recorded, and who touched the same files."""

from __future__ import annotations

from collections.abc import Mapping

from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.errors import AtTerminal, Damaged, Next, NotFound
from agentctl.lean import TYPE_CHECKING, Any
from agentctl.operations.where.command_lines import command_line
from agentctl.operations.where.locating import find_worker
from agentctl.operations.where.ownership import check_own
from agentctl.operations.worktree.standing import state_now
from agentctl.supervision.worktree.record import known_record, read_record

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import ResultFile
    from agentctl.domain.documents.worktrees import ShownWorktree, WorktreeOverlap, WorktreeRecord, WorktreeRow

_RECORD_LIMIT_S = 600.0
Record = dict[str, Any]


def known_worktree(worker: WorkerDir) -> WorktreeRecord | None:
    """Return what is known of a worker's worktree without asking git; None if it has none."""
    record = known_record(worker)
    return _shown(worker, record) if record else None


def _shown(worker: WorkerDir, record: Mapping[str, Any]) -> WorktreeRecord:
    shown: WorktreeRecord = {
        "path": record.get("path"), "branch": record.get("branch"), "repository": record.get("repository"),
        "base": record.get("base"), "removed": record.get("removed"),
        "changes": _with_places(worker, record.get("changes")), "overlaps": overlaps(worker, record),
    }  # fmt: skip
    if _lacks_changes(worker, record):
        shown["next"] = command_line(worker.task, "worktrees", "show", worker.instance)
    return shown


def _with_places(worker: WorkerDir, changes: Any) -> Any:
    """Return recorded changes with whole paths of the files in which work in submodules was kept."""
    if not isinstance(changes, dict) or "submodules" not in changes:
        return changes
    inner = [
        {**one, "kept": [{**file, "path": str(worker.path / file["path"])} for file in _files_of(one)]}
        for one in submodules_of(changes)
    ]
    return {**changes, "submodules": inner}


def submodules_of(changes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what was kept of the submodules of a worktree; a clone may bring anything in its place."""
    found = changes.get("submodules")
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _files_of(one: Mapping[str, Any]) -> list[dict[str, Any]]:
    files = one.get("kept")
    return [file for file in files if _is_file(file)] if isinstance(files, list) else []


def _is_file(file: object) -> bool:
    types = {"path": str, "size": int, "sha256": str}
    return isinstance(file, dict) and all(type(file.get(key)) is kind for key, kind in types.items())


def overlaps(worker: WorkerDir, record: Mapping[str, Any]) -> list[WorktreeOverlap]:
    """Return the files that other ended workers of the task changed too.

    Computed at each call: a stored result of the first of two workers would have to change when the second ends.
    """
    mine = _touched(record)
    found: list[WorktreeOverlap] = []
    for instance in worker.task.instances() if mine else ():
        other = known_record(worker.task.worker(instance)) if instance != worker.instance else {}
        is_rival = other.get("commonDir") == record.get("commonDir") and other.get("path") != record.get("path")
        both = mine & _touched(other) if is_rival else set()
        if both:
            found.append({"instance": instance, "files": sorted(both)})
    return found


def _touched(record: Mapping[str, Any]) -> set[str]:
    files = changes_of(record).get("files")
    return set(files) if isinstance(files, dict) else set()


def changes_of(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the changes in the record of a worktree; {} if it has none."""
    found = record.get("changes")
    return found if isinstance(found, dict) else {}


def kept_files(known: Mapping[str, Any] | None) -> list[ResultFile]:
    """Return the patch, and what was kept of submodules, as files of a result: [{path, size, sha256}]."""
    changes = changes_of(known or {})
    files = [file for one in submodules_of(changes) for file in _files_of(one)]
    if {"patch", "size", "sha256"} <= changes.keys():
        files.insert(0, {"path": changes["patch"], "size": changes["size"], "sha256": changes["sha256"]})
    return [{"path": file["path"], "size": file["size"], "sha256": file["sha256"]} for file in files]


def ensure_recorded(worker: WorkerDir, *, again: bool = False) -> None:
    """Record the changes of an ended worker if its shim could not.

    Args:
        again: Also if an earlier try failed.
    """
    record = known_record(worker)
    if _lacks_changes(worker, record) and (again or not record.get("changes")):
        from agentctl.supervision.worktree.changes import record_changes

        record_changes(worker, limit_s=_RECORD_LIMIT_S)


def _lacks_changes(worker: WorkerDir, record: Mapping[str, Any]) -> bool:
    """Return whether the changes of an ended worker are not recorded, but still may be."""
    if not record or not worker.has_ended or record.get("removed"):
        return False
    return not is_recorded(record) and not changes_of(record).get("lost")


def is_recorded(record: Mapping[str, Any]) -> bool:
    """Return whether all that can be told of the changes of a worker is in its record."""
    changes = changes_of(record)
    return bool(changes) and not {"error", "submodulesError"} & changes.keys()


def list_worktrees(task: TaskDir) -> list[WorktreeRow]:
    """Return a row for each worktree of a task."""
    check_own(task)
    found = (task.worker(instance) for instance in task.instances())
    return [_row(worker) for worker in found if worker.worktree.exists()]


def show_worktree(task: TaskDir, instance: str) -> ShownWorktree:
    """Return everything that is known of one worktree."""
    check_own(task)
    worker = find_worker(task, instance)
    worktree_record(worker)
    ensure_recorded(worker, again=True)
    return {**_row(worker), **_shown(worker, known_record(worker))}


def worktree_record(worker: WorkerDir) -> Record:
    record = read_record(worker)
    if record is None:
        raise NotFound(f"{worker.instance} has no worktree", hint=Next("make a worktree"))
    if not all(isinstance(record.get(key), str) for key in ("path", "branch", "repository")):
        raise Damaged(f"{worker.worktree} does not say where the worktree is", hint=AtTerminal("agentctl doctor --fix"))
    return record


def _row(worker: WorkerDir) -> WorktreeRow:
    ensure_recorded(worker)
    record = known_record(worker)
    return {
        "agentInstance": worker.instance,
        "path": record.get("path"),
        "branch": record.get("branch"),
        "base": record.get("base"),
        "files": changes_of(record).get("fileCount"),
        **state_now(worker, record),
        "overlaps": overlaps(worker, record),
    }
