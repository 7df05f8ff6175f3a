"""Who started whom, across all tasks and roots: a worker's spec names its parent, the parent's folder its children.

The name of a child is written under the queue's lock of its parent's tree, before the child is announced. So a process
that takes that lock after a worker was barred from starting more sees all that the worker has started.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping

from agentctl.adapters.files import make_folder, read_known, to_json, write_whole
from agentctl.adapters.opening import OddFile
from agentctl.adapters.taskdir import TaskDir, WorkerDir, names_in
from agentctl.adapters.taskyaml import cache
from agentctl.domain.names import is_name
from agentctl.domain.states import ChildrenAtEnd
from agentctl.lean import Any
from agentctl.supervision.worker import cancel_request

#: How many names in a worker's `children/` are looked at: the worker can write there itself.
_MOST_CHILDREN = 20_000


def parent_of(worker: WorkerDir, spec: Mapping[str, Any] | None = None) -> WorkerDir | None:
    """Return the worker that started a worker, whichever task it is in; None if a person did.

    Args:
        spec: Its spec, where that was read already.
    """
    said = read_known(worker.spec) if spec is None else spec
    return _parent_in(worker.task, said.get("parent"), said.get("parentTask"))


def _parent_in(task: TaskDir, parent: object, parent_task: object) -> WorkerDir | None:
    if not isinstance(parent, str) or not is_name(parent):
        return None
    if not isinstance(parent_task, str):
        return task.worker(parent)
    if _path_in(parent_task):
        return TaskDir(parent_task).worker(parent)
    return task.sibling(parent_task).worker(parent) if is_name(parent_task) else None


def task_name(task: TaskDir, seen_from: TaskDir) -> str | None:
    """Return how a task is named in another one: by its id, or its path in another root; None if it is the same."""
    if task.path == seen_from.path:
        return None
    return task.id if task.path.parent == seen_from.path.parent else str(task.path)


def worker_name(worker: WorkerDir, seen_from: TaskDir) -> str:
    """Return how a worker is named in a task: `build`, of another task `sub/build`."""
    return "/".join(filter(None, (task_name(worker.task, seen_from), worker.instance)))


def ancestors(worker: WorkerDir, spec: Mapping[str, Any] | None = None) -> Iterator[WorkerDir]:
    """Yield the workers above one, nearest first; a forged cycle is cut.

    Args:
        spec: As of `parent_of`.
    """
    seen = {str(worker.path)}
    above = parent_of(worker, spec)
    while above is not None and str(above.path) not in seen:
        seen.add(str(above.path))
        yield above
        above = parent_of(above)


def enlist_child(parent: WorkerDir, child: WorkerDir) -> None:
    """Write the name of a child into its parent's folder."""
    make_folder(parent.children)
    name, content = ".".join(child.id), b""
    if parent.task.path.parent != child.task.path.parent:
        # Children of the same name in two roots have a file each.
        name, content = name_elsewhere(child), to_json({"path": str(child.path)})
    write_whole(parent.children / name, content, durable=False)


def name_elsewhere(child: WorkerDir) -> str:
    """Return the name of a child in the folder of a parent in another root."""
    found = os.stat(child.path)
    return ".".join((*child.id, f"{found.st_dev}-{found.st_ino}"))


def is_enlisted(parent: WorkerDir, child: WorkerDir) -> bool:
    """Return whether a worker's folder names a worker of another root as its child."""
    try:
        return (parent.children / name_elsewhere(child)).exists()
    except (FileNotFoundError, NotADirectoryError, OddFile):
        return False


def children_of(parent: WorkerDir) -> list[WorkerDir]:
    """Return a worker's children, in any root; a name counts only if the child's spec says the same."""
    names = names_in(parent.children, _MOST_CHILDREN)
    named = (_child(parent, name) for name in sorted(names))
    return [child for child in named if child is not None and _is_above(parent, child)]


def _child(parent: WorkerDir, name: str) -> WorkerDir | None:
    task_id, _, rest = name.partition(".")
    instance, _, elsewhere = rest.partition(".")
    if not is_name(task_id) or not is_name(instance):
        return None
    if not elsewhere:
        return parent.task.sibling(task_id).worker(instance)
    path = _path_in(read_known(parent.children / name).get("path"))
    return WorkerDir(path) if path else None


def _path_in(value: object) -> str | None:
    """Return the path in another root that a file names; None if it cannot be a path (a NUL, half a character)."""
    if not isinstance(value, str) or not os.path.isabs(value) or "\0" in value:
        return None
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        return None
    return value


def _is_above(parent: WorkerDir, child: WorkerDir) -> bool:
    """Return whether a worker's spec names this one as its parent; its path may lead there through another link."""
    above = parent_of(child)
    return above is not None and above.is_at(parent.path)


def descendants(worker: WorkerDir) -> list[WorkerDir]:
    """Return all workers below one, nearest first."""
    return _below(worker, lambda _: True)


def cancelled_with(worker: WorkerDir) -> list[WorkerDir]:
    """Return the workers below one that are to be cancelled with it, nearest first."""
    return _below(worker, lambda one: not leaves_children(one))


def _below(worker: WorkerDir, is_followed: Callable[[WorkerDir], bool]) -> list[WorkerDir]:
    found, seen = [worker], {str(worker.path)}
    for one in found:
        for child in children_of(one) if is_followed(one) else []:
            if str(child.path) not in seen:
                seen.add(str(child.path))
                found.append(child)
    return found[1:]


def leaves_children(worker: WorkerDir) -> bool:
    """Return whether a worker's children are to live on after it, by its task's configuration."""
    return children_at_end(worker.task) is ChildrenAtEnd.LEAVE


def children_at_end(task: TaskDir) -> ChildrenAtEnd:
    """Return what becomes of workers that outlive their parent."""
    known = cache.cached(task)
    return known.children_at_end if known else ChildrenAtEnd.WAIT


def barred_by(worker: WorkerDir) -> WorkerDir | None:
    """Return the worker above one whose cancel bars the start of anything below it; None if there is none."""
    for above in ancestors(worker):
        if leaves_children(above):
            return None  # No cancel is passed down from there.
        if cancel_request.is_asked(above):
            return above
    return None
