"""A decision to remove workers of a task is one: it is on disk before anything is changed, and then carried out.

`removal.json` of the task names them. It is written, carried out and removed under the queue's lock of the tree, so a
process that has this lock and finds the file knows that whoever decided was killed. First the log says that they are
removed; then what else names them goes; then their folders leave the task, each by one rename, and so their names are
free. What is deleted at the end, nobody looks for any more.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Collection, Iterator, Sequence

from agentctl.adapters import eventlog
from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import (
    make_folder,
    read_json,
    read_known,
    storage_errors,
    sync_folder,
    to_json,
    write_whole,
)
from agentctl.adapters.locks import locked
from agentctl.adapters.opening import OddFile
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import Root, TaskDir, WorkerDir, names_in
from agentctl.adapters.taskyaml.roster import mark_stale
from agentctl.adapters.treedir import tree_of
from agentctl.domain import events as ev
from agentctl.domain.names import is_name
from agentctl.errors import AgentctlError, AtTerminal, Damaged
from agentctl.lean import Any, NamedTuple
from agentctl.operations.where.ownership import disown_at, is_own
from agentctl.supervision import failpoints
from agentctl.supervision.queue.queue_hold import forget_holds
from agentctl.supervision.worker.kinship import name_elsewhere, parent_of

#: So many files of `keys/` and `handles/` are looked at; more than any task has.
_MOST_FILES = 100_000
_HINT = AtTerminal("agentctl doctor --fix sets it aside")


class RemovalOrder(NamedTuple):
    """Which workers of a task are removed, and which of its sub-tasks with them."""

    #: A random text: the events of the removal have it.
    token: str
    by: str
    workers: Sequence[str]
    subtasks: Sequence[str]
    #: Those of the workers that had a folder when it was decided: a folder that comes later is another worker's.
    folders: Collection[str]


def order_removal(task: TaskDir, by: str, workers: Sequence[str], subtasks: Sequence[str]) -> RemovalOrder:
    """Decide that workers of a task are removed (the caller holds the queue's lock of the tree, and carries it out)."""
    folders = [name for name in workers if task.worker(name).path.exists()]
    order = RemovalOrder(os.urandom(8).hex(), by, workers, subtasks, folders)
    body = {
        "id": order.token, "by": by, "at": now_iso(), "workers": [*workers], "tasks": [*subtasks], "folders": folders,
    }  # fmt: skip
    write_whole(task.removal, to_json(body))
    failpoints.reached("remove.after-order")
    return order


def read_removal(task: TaskDir) -> RemovalOrder:
    """Return the decision that is on disk.

    Raises:
        Damaged: It does not say who is to be removed.
    """
    value = read_json(task.removal) or {}
    token, by = value.get("id"), value.get("by")
    names = [_names_in(value.get(key)) for key in ("workers", "tasks", "folders")]
    if not isinstance(token, str) or not is_name(token) or None in names:
        raise Damaged(f"{task.removal} does not say who is to be removed", hint=_HINT)
    return RemovalOrder(token, by if isinstance(by, str) else "user", *(one or () for one in names))


def _names_in(value: object) -> list[str] | None:
    if not isinstance(value, list) or not all(isinstance(one, str) and is_name(one) for one in value):
        return None
    return value


def finish_removal(task: TaskDir) -> None:
    """Carry out what is left of a removal that was decided in a task of one's own, and then interrupted.

    Raises:
        AgentctlError, OSError: That cannot be done now.
    """
    if not task.removal.exists() or not is_own(task):
        return
    with locked(tree_of(task).queue_lock):
        if not task.removal.exists():  # Who decided it was alive, and has carried it out.
            return
        order = read_removal(task)
        carry_out_removal(task, order)
    delete_removed(task.root)


def carry_out_removal(task: TaskDir, order: RemovalOrder) -> None:
    """Carry out a decided removal, or the rest of it (the caller holds the queue's lock of the tree)."""
    _tell_log(task, order)
    failpoints.reached("remove.after-events")
    _forget_names(task, order)
    place = _place_for(task, order)
    for name in order.folders:
        _move_away(task.worker(name).path, place / name)
        failpoints.reached("remove.after-move")
    for name in order.subtasks:
        _move_away(task.sibling(name).path, place / f"task.{name}")
        disown_at(task.sibling(name), TaskDir(place / f"task.{name}").nonce())
    sync_folder(task.agents)
    mark_stale(task)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(task.removal)
    failpoints.reached("remove.before-delete")


def _tell_log(task: TaskDir, order: RemovalOrder) -> None:
    """Append the events of a removal, except for those that the log has: a killed writer may have written some."""
    at, more = now_iso(), {"removal": order.token}
    events = [
        *(ev.make_event(at, ev.SUBTASK_REMOVED, task.id, order.by, {"taskId": one, **more}) for one in order.subtasks),
        *(ev.make_event(at, ev.REMOVED, task.id, order.by, more, one) for one in order.workers),
    ]

    def known(fd: int) -> set[str | None]:
        names = eventlog.instances_in(fd, (ev.REMOVED,), said={"removal": order.token})
        return {*names, None} if names else set()  # Those of the sub-tasks came first.

    eventlog.append(task.events, events, known=known)


def _forget_names(task: TaskDir, order: RemovalOrder) -> None:
    """Remove what names the workers outside of their folders: while these are in place, nobody else has the names."""
    gone = frozenset(order.workers)
    for path in _files_in(task.keys):
        if read_known(path).get("agentInstance") in gone:
            _unlink(path)
    for path in _files_in(task.handles):
        pending = read_known(path).get("pending")
        if _awaits(pending, task.id, gone):
            _unlink(path)
    workers = [task.worker(name) for name in order.workers]
    forget_holds(tree_of(task), workers)
    for worker in workers:
        _unlist(worker)


def _unlist(child: WorkerDir) -> None:
    """Remove the name of a child from its parent's folder."""
    parent = parent_of(child)
    if parent is not None:
        is_near = parent.task.path.parent == child.task.path.parent
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, OddFile):
            os.unlink(parent.children / (".".join(child.id) if is_near else name_elsewhere(child)))


def _files_in(folder: FilePath) -> Iterator[FilePath]:
    return (folder / name for name in names_in(folder, _MOST_FILES) if name.endswith(".json") or is_name(name))


def _awaits(pending: Any, task_id: str, names: Collection[str]) -> bool:
    """Return whether a call that is to be answered later waits for one of some workers."""
    targets = pending.get("targets") if isinstance(pending, dict) else None
    return isinstance(targets, list) and any(
        isinstance(one, dict) and one.get("taskId") == task_id and one.get("agentInstance") in names for one in targets
    )


def _unlink(path: FilePath) -> None:
    with contextlib.suppress(FileNotFoundError), storage_errors(path, "remove"):
        os.unlink(path)


def _place_for(task: TaskDir, order: RemovalOrder) -> FilePath:
    make_folder(task.root.removed)
    place = task.root.removed / f"{task.id}.{order.token}"
    make_folder(place)
    return place


def _move_away(path: FilePath, place: FilePath) -> None:
    """Move a folder out of the task, unless that was done before: what lies there now is another one's."""
    if os.path.lexists(place) or not os.path.lexists(path):
        return
    with storage_errors(path, "move away"):
        try:
            os.rename(path, place)
        except PermissionError:  # The worker took its mode; a folder that gets another parent has to be written.
            os.chmod(path, 0o700)
            os.rename(path, place)


def delete_removed(root: Root) -> None:
    """Delete what was removed, also by commands that were killed before they had deleted it.

    What a decision still moves there is left.
    """
    for name in names_in(root.removed, _MOST_FILES):
        task_id, _, token = name.partition(".")
        if is_name(task_id) and _is_under_way(root.task(task_id), token):
            continue
        delete_folder(root.removed / name)
    with contextlib.suppress(OSError, AgentctlError):
        os.rmdir(root.removed)


def _is_under_way(task: TaskDir, token: str) -> bool:
    try:
        return task.removal.exists() and read_removal(task).token == token
    except Damaged:
        return True


def delete_folder(path: FilePath) -> None:
    """Delete a folder with all that is in it, also where its modes were taken away; links in it are not followed."""

    def opened(function: Any, below: str, _error: object) -> None:
        with contextlib.suppress(OSError):
            os.chmod(os.path.dirname(below), 0o700)
            if os.path.isdir(below) and not os.path.islink(below):
                os.chmod(below, 0o700)
                shutil.rmtree(below, ignore_errors=True)
            else:
                os.unlink(below)

    if os.path.islink(path) or not os.path.isdir(path):
        raise OddFile(f"{path} is not a folder", hint="look at it, and remove it")
    shutil.rmtree(path, onerror=opened)
