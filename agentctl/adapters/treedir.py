"""Which tree of tasks a task is in: the only module that makes a `TreeDir`."""

from __future__ import annotations

import os
from collections.abc import Iterable

from agentctl.adapters.taskdir import TaskDir, TreeDir
from agentctl.adapters.taskyaml.cache import cached


def tree_of(task: TaskDir) -> TreeDir:
    """Return the tree that a task is in: the folder of the root task, whose slots and queue this task uses."""
    config = cached(task)
    return TreeDir(task.sibling(config.root_task_id).path if config and config.root_task_id else task.path)


def trees_of(tasks: Iterable[TaskDir]) -> list[TreeDir]:
    """Return the trees that tasks are in, each of them once."""
    return list({tree.path: tree for tree in map(tree_of, tasks)}.values())


def tree_at(folder: str | os.PathLike[str]) -> TreeDir:
    """Return the tree of which this is the root task's folder.

    For the processes of a tree, which were started with that folder, and for what makes or examines the folder of any
    task: every task has the folders of a tree, a sub-task to no purpose.
    """
    return TreeDir(folder)
