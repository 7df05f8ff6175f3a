"""The tasks of a root, and the state of each: computed from its own workers and its sub-tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentctl.adapters.files import read_quietly
from agentctl.adapters.opening import OddFile
from agentctl.adapters.taskdir import Root, TaskDir
from agentctl.adapters.taskyaml.cache import TaskConfig
from agentctl.domain.projection import TaskView
from agentctl.domain.states import Status, task_state
from agentctl.lean import NamedTuple
from agentctl.operations.where.folding import fold
from agentctl.operations.where.locating import current_task
from agentctl.operations.where.ownership import is_own
from agentctl.operations.where.task_limits import usable_config
from agentctl.supervision.worker.endings import decision_of


class _TaskFacts(NamedTuple):
    """What was read of a task."""

    task: TaskDir
    view: TaskView
    config: TaskConfig
    #: The ids of its sub-tasks that exist.
    below: list[str]


def list_tasks(root: Root) -> list[dict[str, Any]]:
    """Return a row for each task of a root."""
    current = current_task(root)
    facts = {task_id: _read_facts(root.task(task_id)) for task_id in root.task_ids()}
    return [{**_row(one, current), "state": _state(one, facts, set())} for one in facts.values()]


def _read_facts(task: TaskDir) -> _TaskFacts:
    from agentctl.operations.where.subtasks_below import subtasks_of

    try:
        view = fold(task)
    except OddFile:  # It is listed all the same; commands that read it say why.
        view = TaskView()
    return _TaskFacts(task, view, usable_config(task), [below.id for below in subtasks_of(task, view.subtasks)])


def _state(one: _TaskFacts, facts: Mapping[str, _TaskFacts], seen: set[str]) -> str:
    """Return the state of a task: that of its own workers, unless it has none or a sub-task works or asks."""
    seen.add(one.task.id)
    below = [_state(facts[name], facts, seen) for name in one.below if name in facts and name not in seen]
    own = task_state(worker.status for worker in one.view.workers.values())
    if not one.view.workers and below:
        own = next((state for state in ("failed", "canceled", "completed") if state in below), own)
    return next((state for state in ("input-required", "working") if state in {own, *below}), own)


def _row(one: _TaskFacts, current: str | None) -> dict[str, Any]:
    task, config = one.task, one.config
    statuses = [worker.status for worker in one.view.workers.values()]
    counts = {status.value: statuses.count(status) for status in Status}
    row = {
        "taskId": task.id,
        "title": config.title,
        "workers": len(statuses),
        **counts,
        "createdAt": config.created_at,
        "parentTaskId": config.parent_task_id,
        "childTaskIds": one.below,
        "current": task.id == current,
        "own": is_own(task),
        "path": str(task.path),
    }
    return row | (_of_subtask(one) if config.parent_task_id else {})


def _of_subtask(one: _TaskFacts) -> dict[str, Any]:
    """Return the additional keys of a sub-task: its author, its one agent, and that agent's summary or failure."""
    from agentctl.operations.show.results import declared_summary
    from agentctl.operations.show.subtask_answer import why

    subtask: dict[str, Any] = {"author": one.config.author, "agent": one.config.agent}
    worker = next(iter(one.view.workers.values()), None)
    if worker is None or not worker.is_terminal or not is_own(one.task):
        return {**subtask, "summary": None, "failureReason": None}
    worker_dir = one.task.worker(worker.instance)
    failure = None if worker.status is Status.COMPLETED else why(decision_of(worker_dir))
    return {**subtask, "summary": declared_summary(read_quietly(worker_dir.result)), "failureReason": failure}
