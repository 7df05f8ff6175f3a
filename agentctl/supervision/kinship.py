"""Who started whom, over all tasks: a worker's spec names its parent, the parent's folder its children.

The name of a child is put down under the queue's lock before anybody is told of the child, so whoever has had that lock
since a worker was barred from starting more sees all that it started.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from agentctl.adapters import config
from agentctl.adapters.files import make_folder, read_quietly, storage_errors
from agentctl.adapters.taskdir import AgentDir, TaskDir
from agentctl.domain.names import is_name
from agentctl.domain.states import ChildrenAtEnd


def parent_of(agent: AgentDir) -> AgentDir | None:
    """Return the worker that started a worker, whichever task it is in; None where a person did."""
    spec = read_quietly(agent.spec)
    return _parent_in(agent.task, spec.get("parent"), spec.get("parentTask"))


def _parent_in(task: TaskDir, parent: object, parent_task: object) -> AgentDir | None:
    if not isinstance(parent, str) or not is_name(parent):
        return None
    if not isinstance(parent_task, str):
        return task.agent(parent)
    if os.path.isabs(parent_task):
        return TaskDir(parent_task).agent(parent)
    return task.sibling(parent_task).agent(parent) if is_name(parent_task) else None


def task_name(parent: TaskDir, child: TaskDir) -> str | None:
    """Return how a child's spec names the task of its parent: None for the same one."""
    if parent.path == child.path:
        return None
    return parent.id if parent.path.parent == child.path.parent else str(parent.path)


def ancestors(agent: AgentDir) -> Iterator[AgentDir]:
    """Yield the workers above one, nearest first; a forged circle ends."""
    seen = {str(agent.path)}
    above = parent_of(agent)
    while above is not None and str(above.path) not in seen:
        seen.add(str(above.path))
        yield above
        above = parent_of(above)


def enlist(parent: AgentDir, child: AgentDir) -> None:
    """Put the name of a child down in its parent's folder; one of another root is not followed from there."""
    if parent.task.path.parent != child.task.path.parent:
        return
    make_folder(parent.children)
    name = f"{child.task.id}.{child.instance}"
    with storage_errors(parent.children, "write to"):
        os.close(os.open(parent.children / name, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))


def children_of(parent: AgentDir) -> list[AgentDir]:
    """Return the workers that one has started, in any task of its root; a name whose spec says otherwise is none."""
    try:
        names = os.listdir(parent.children)
    except FileNotFoundError:
        return []
    found = []
    for name in sorted(names):
        task_id, _, instance = name.partition(".")
        if is_name(task_id) and is_name(instance):
            child = parent.task.sibling(task_id).agent(instance)
            above = parent_of(child)
            if above is not None and above.path == parent.path:
                found.append(child)
    return found


def descendants(agent: AgentDir) -> list[AgentDir]:
    """Return all workers below one, nearest first."""
    return _below(agent, lambda _: True)


def cancelled_with(agent: AgentDir) -> list[AgentDir]:
    """Return the workers below one that are to be cancelled with it, nearest first."""
    return _below(agent, lambda one: not leaves_children(one))


def _below(agent: AgentDir, is_followed: Callable[[AgentDir], bool]) -> list[AgentDir]:
    found, seen = [agent], {str(agent.path)}
    for one in found:
        for child in children_of(one) if is_followed(one) else []:
            if str(child.path) not in seen:
                seen.add(str(child.path))
                found.append(child)
    return found[1:]


def leaves_children(agent: AgentDir) -> bool:
    """Tell whether what a worker started is to live on after it, by its task's configuration."""
    return policy_of(agent.task) is ChildrenAtEnd.LEAVE


def policy_of(task: TaskDir) -> ChildrenAtEnd:
    """Return what becomes of workers that outlive the one that started them."""
    known = config.cached(task)
    return known.children_at_end if known else ChildrenAtEnd.WAIT


def barred_by(agent: AgentDir) -> AgentDir | None:
    """Return the worker above one whose cancel bars the start of anything below it; None where there is none."""
    for above in ancestors(agent):
        if leaves_children(above):
            return None  # No cancel comes down from there.
        if above.cancel.exists():
            return above
    return None
