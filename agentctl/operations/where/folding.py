"""Folds the whole log of a task into its current state."""

from __future__ import annotations

from agentctl.adapters.eventlog import LogReader
from agentctl.adapters.taskdir import TaskDir
from agentctl.domain.worker.projection import TaskView


def fold(task: TaskDir) -> TaskView:
    """Return what the log of a task says; nothing is judged. To look more than once, keep a reader instead."""
    view = TaskView()
    view.apply(LogReader(task.events).rows())
    return view
