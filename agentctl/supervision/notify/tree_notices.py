"""Gathers the notices of a tree of tasks from the logs of all of its tasks, bringing them up to date at each look."""

from __future__ import annotations

import contextlib
import os

from agentctl.adapters.eventlog import LogReader
from agentctl.adapters.taskdir import TaskDir, TreeDir
from agentctl.domain.notice.notices import Notice, TaskNotices, of_tree
from agentctl.errors import AgentctlError

#: More sub-tasks than any honest tree has; a forged log may name any number.
_MOST_TASKS = 1000


class TreeNotices:
    """The notices of a tree of tasks."""

    def __init__(self, tree: TreeDir) -> None:
        self.tasks: dict[str, TaskDir] = {}
        self._readers: dict[str, LogReader] = {}
        self._told: dict[str, TaskNotices] = {}
        self._take_in(tree)

    def _take_in(self, task: TaskDir) -> None:
        self.tasks[task.id] = task
        self._readers[task.id] = LogReader(task.events)
        self._told[task.id] = TaskNotices(task.id)

    def look(self) -> list[Notice]:
        """Read what was added to the logs, and return all that there is to be told now."""
        for name in self.tasks:
            self._apply(name)
        known = 0
        while known < len(self._told):  # What was found may have sub-tasks of its own.
            name = list(self._told)[known]
            known += 1
            for below, origin in self._told[name].subtasks.items():
                task = self.tasks[name].sibling(below)
                if below not in self.tasks and len(self.tasks) < _MOST_TASKS and _is_that(task, origin):
                    self._take_in(task)
                    self._apply(below)
        return of_tree(list(self._told.values()))

    def _apply(self, name: str) -> None:
        with contextlib.suppress(AgentctlError, OSError):  # Something else in its place: what was read stands.
            self._told[name].apply(self._readers[name].rows())

    def sizes(self) -> dict[str, int]:
        """Return the size of each log now."""
        found = {}
        for name, task in self.tasks.items():
            with contextlib.suppress(OSError):
                found[name] = os.stat(task.events).st_size
        return found


def _is_that(task: TaskDir, origin: object) -> bool:
    """Return whether a task is the one that was made below another, and not one that lies in its place now."""
    return bool(origin) and not os.path.islink(task.path) and task.nonce() == origin
