"""A task is put away with all tasks below it, or brought back: decided by one file, then carried out by renames.

A task that was put away is `archive/NAME/tasks/ID`, beside its sub-tasks: a root of its own, which no command looks
into. `archive.json` in the topmost task is the decision; it is written under the locks of the root and of the queue,
and stays with the task. From then on no command lists the task; if whoever decided is killed, the next one goes on. A
task that was put away is nobody's own where it lies, so it can only be looked at.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence

from agentctl.adapters.files import (
    create_whole,
    make_folder,
    read_json,
    read_known,
    storage_errors,
    sync_folder,
    to_json,
    write_whole,
)
from agentctl.adapters.locks import is_alive_held, locked
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import Root, TaskDir, names_in
from agentctl.adapters.treedir import tree_of
from agentctl.domain.names import is_name
from agentctl.errors import Argument, Damaged, Refused, WithArguments
from agentctl.lean import NamedTuple
from agentctl.operations.where.chosen_task import choose_none_of
from agentctl.operations.where.ownership import is_own, note_own_again, was_own_at
from agentctl.operations.where.root_lock import root_locked
from agentctl.supervision import failpoints

_MOST = 100_000
_HINT = "look at it; without it, the task is where it was"


class PutAway(NamedTuple):
    """A decision about a task and those below it."""

    #: Its name in the archive: that of the topmost task, with a number where an earlier one has that name.
    name: str
    task_id: str
    #: The topmost task, and all below it.
    tasks: Sequence[str]
    title: str
    by: str
    at: str
    #: When the last of its workers ended; None if it had none.
    ended_at: str | None
    workers: int
    #: It is being brought back.
    is_back: bool = False


def write_put_away(task: TaskDir, decision: PutAway) -> None:
    """Write a decision down (the caller holds the lock of the root)."""
    body = {
        "as": decision.name, "task": decision.task_id, "tasks": [*decision.tasks], "title": decision.title,
        "by": decision.by, "at": decision.at, "endedAt": decision.ended_at, "workers": decision.workers,
        "back": decision.is_back,
    }  # fmt: skip
    write_whole(task.put_away, to_json(body))
    failpoints.reached("archive.after-order")


def read_put_away(task: TaskDir) -> PutAway:
    """Return the decision about a task, wherever it lies by now.

    Raises:
        Damaged: It cannot be understood.
    """
    value = read_json(task.put_away) or {}
    name, rows, texts = value.get("as"), value.get("tasks"), [value.get(key) for key in ("title", "by", "at")]
    workers, ended_at = value.get("workers"), value.get("endedAt")
    tasks = [one for one in rows if isinstance(one, str) and is_name(one)] if isinstance(rows, list) else []
    if tasks != rows or not isinstance(name, str) or not is_name(name) or task.id not in tasks:
        raise Damaged(f"{task.put_away} does not say what was put away", hint=_HINT)
    title, by, at = (one if isinstance(one, str) else "" for one in texts)
    return PutAway(
        name, task.id, tasks, title, by, at, ended_at if isinstance(ended_at, str) else None,
        workers if type(workers) is int else 0, value.get("back") is True,
    )  # fmt: skip


def free_name(root: Root, task_id: str) -> str:
    """Return a name in the archive for a task (the caller holds the lock of the root)."""
    number = 1
    while os.path.lexists(root.archive / _numbered(task_id, number)):
        number += 1
    return _numbered(task_id, number)


def _numbered(task_id: str, number: int) -> str:
    return task_id if number == 1 else f"{task_id[:56]}-{number}"


def carry_out_put_away(root: Root, decision: PutAway) -> None:
    """Move the tasks of a decision to where they are to be (the caller holds the lock of the root)."""
    place = root.archived(decision.name)
    if decision.is_back:
        _bring_back(root, place, decision)
        return
    _refuse_live(root, decision)
    for folder in (root.archive, place.path, FilePath(place.path / "tasks")):
        make_folder(folder)
    if not (root.archive / ".gitignore").exists():
        create_whole(root.archive / ".gitignore", b"*\n")
    for name in _lowest_first(decision):
        _move(root.task(name).path, place.task(name).path)
        failpoints.reached("archive.after-move")
    choose_none_of(root, decision.tasks)
    _sync(root, place)


def _refuse_live(root: Root, decision: PutAway) -> None:
    """Raise `Refused` where something is at work after all: no command has decided this."""
    for task in map(root.task, decision.tasks):
        live = next((name for name in task.instances() if is_alive_held(task.worker(name).shim)), None)
        if live is not None:
            raise Refused(
                f"{task.id} is to be put away, says {root.task(decision.task_id).put_away}, but {live} is at work",
                hint="remove that file, if you have not asked for that",
            )


def _lowest_first(decision: PutAway) -> list[str]:
    """Return the tasks of a decision, the topmost one, which has the decision, last."""
    return [*(name for name in decision.tasks if name != decision.task_id), decision.task_id]


def _bring_back(root: Root, place: Root, decision: PutAway) -> None:
    for name in _lowest_first(decision):
        _move(place.task(name).path, root.task(name).path)
        failpoints.reached("archive.after-move")
        note_own_again(root.task(name))
    _sync(root, place)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(root.task(decision.task_id).put_away)
    for folder in (place.path / "tasks", place.path):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def _sync(root: Root, place: Root) -> None:
    for folder in (root.tasks, place.path / "tasks"):
        with contextlib.suppress(FileNotFoundError):
            sync_folder(folder)


def _move(path: FilePath, to: FilePath) -> None:
    """Move a task, unless that was done before: another one may have its old name by now."""
    if os.path.lexists(to) or not os.path.lexists(path):
        return
    with storage_errors(path, "move"):
        os.rename(path, to)


def finish_put_away(task: TaskDir) -> None:
    """Carry out what is left of a decision about a task in its place among the others; of one's own alone.

    Raises:
        AgentctlError, OSError: That cannot be done now.
    """
    if not task.put_away.exists() or not is_own(task):
        return
    root = task.root
    with root_locked(root), locked(tree_of(task).queue_lock):
        if task.put_away.exists():
            carry_out_put_away(root, read_put_away(task))


def all_put_away(root: Root) -> Iterator[tuple[Root, TaskDir]]:
    """Yield each task that was put away, with the root that it is there; what is on its way there is not among them."""
    for name in sorted(filter(is_name, names_in(root.archive, _MOST))):
        place = root.archived(name)
        if os.path.islink(place.path):
            continue
        for task_id in filter(is_name, names_in(place.path / "tasks", _MOST)):
            task = place.task(task_id)
            if not os.path.islink(task.path) and task.put_away.exists() and task.task_file.exists():
                yield place, task


def finish_all(root: Root) -> None:
    """Carry out what is left of all decisions about tasks of one's own, wherever these lie by now."""
    for name in filter(is_name, names_in(root.tasks, _MOST)):
        finish_put_away(root.task(name))
    for _, task in [*all_put_away(root)]:
        if read_known(task.put_away).get("back") is True and was_own_at(root.task(task.id), task):
            with root_locked(root):
                if task.put_away.exists():
                    carry_out_put_away(root, read_put_away(task))


def unfinished(root: Root) -> list[TaskDir]:
    """Return the tasks of one's own about which a decision was not carried out to its end."""
    here = (root.task(name) for name in filter(is_name, names_in(root.tasks, _MOST)))
    there = (task for _, task in all_put_away(root) if read_known(task.put_away).get("back") is True)
    return [
        *(task for task in here if task.put_away.exists() and is_own(task)),
        *(task for task in there if was_own_at(root.task(task.id), task)),
    ]


def check_was_own(root: Root, task: TaskDir) -> None:
    """Raise `Refused` for a task that was put away, but not as one that this person had made."""
    if not was_own_at(root.task(task.id), task):
        raise Refused(
            f"{task.path} was not made here by you, or was moved: it can only be looked at",
            hint=WithArguments("look at it with ", Argument("root"), ", or move it by hand"),
        )
