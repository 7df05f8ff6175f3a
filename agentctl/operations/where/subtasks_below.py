"""A task and the sub-tasks below it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agentctl.adapters.taskdir import TaskDir
from agentctl.adapters.taskyaml.cache import cached
from agentctl.errors import AgentctlError
from agentctl.operations.where.folding import fold

#: A forged cycle of tasks is cut there; no honest tree is as deep.
_DEEPEST = 64


def subtree(task: TaskDir, *, as_far_as_readable: bool = False) -> list[TaskDir]:
    """Return a task and all tasks below it, each after the one above it.

    Args:
        as_far_as_readable: Of a task whose log cannot be read, return only that: its reader says what is in the way.
    """
    found, seen = [task], {task.id}
    for one in found:
        try:
            names: Iterable[str] = fold(one).subtasks
        except (AgentctlError, OSError):
            if not as_far_as_readable:
                raise
            names = ()
        for below in subtasks_of(one, names):
            if below.id not in seen:
                seen.add(below.id)
                found.append(below)
    return found


def nesting(task: TaskDir, level: int = 0) -> Iterator[tuple[TaskDir, int]]:
    """Yield a task and all below it as an outline: each task with its level, then the tasks below it."""
    yield task, level
    if level < _DEEPEST:
        for below in subtasks_of(task, fold(task).subtasks):
            yield from nesting(below, level + 1)


def subtasks_of(task: TaskDir, names: Iterable[str]) -> list[TaskDir]:
    """Return the sub-tasks that a task's log names, as far as they exist and name the task as their parent."""
    found = []
    for name in names:
        config = cached(task.sibling(name))
        if config is not None and config.parent_task_id == task.id and task.sibling(name).exists:
            found.append(task.sibling(name))
    return found
