"""Which workers have somebody below them who asks: a parent that waits for an answered question looks at work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from agentctl.adapters import eventlog
from agentctl.adapters.config import cached
from agentctl.adapters.taskdir import AgentDir, TaskDir
from agentctl.domain.projection import TaskView, WorkerView
from agentctl.domain.states import Status
from agentctl.operations.subtree import subtasks_of
from agentctl.supervision.questions import open_questions, read_question

#: A forged circle of tasks ends there; no honest tree is as deep.
_DEEPEST = 64


def asked_below(task: TaskDir, view: TaskView) -> Mapping[str, int]:
    """Return how many questions are open below each worker of a task, in its sub-tasks too.

    Under "" stand all of them but those of workers that the person has started in the task itself: these are `blocked`
    in plain sight.
    """
    found: Counter[str] = Counter()
    for worker in view.workers.values():
        if worker.status is Status.BLOCKED and worker.parent:
            _add(found, view, worker.parent, _open(task.agent(worker.instance)))
    for below in subtasks_of(task, view.subtasks):
        parent = cached(below)
        _add(found, view, parent.parent_instance if parent else None, _in_all_of(below, _DEEPEST))
    return found


def _add(found: Counter[str], view: TaskView, name: str | None, count: int) -> None:
    """Count questions for a worker and those that it descends from."""
    if not count:
        return
    found[""] += count
    seen: set[str] = set()
    while name is not None and name not in seen:
        seen.add(name)
        found[name] += count
        above: WorkerView | None = view.workers.get(name)
        name = above.parent if above is not None else None


def _in_all_of(task: TaskDir, depth: int) -> int:
    """Return how many questions are open in a task and all below it."""
    view = TaskView()
    view.apply(eventlog.LogReader(task.events).rows())
    own = sum(_open(task.agent(one.instance)) for one in view.workers.values() if one.status is Status.BLOCKED)
    return own + sum(_in_all_of(below, depth - 1) for below in subtasks_of(task, view.subtasks) if depth)


def _open(agent: AgentDir) -> int:
    """Return how many questions of a worker are open; what a kept agent waits with for its next message is none."""
    bodies = (read_question(agent, name) for name in open_questions(agent))
    return sum(1 for body in bodies if body is not None and not body.get("idle"))
