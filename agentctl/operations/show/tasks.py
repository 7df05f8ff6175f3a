"""The tasks of a root, and the state of each: computed from its own workers and its sub-tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from agentctl.adapters.files import read_known
from agentctl.adapters.opening import OddFile
from agentctl.adapters.taskdir import Root, TaskDir
from agentctl.adapters.taskyaml.cache import TaskConfig
from agentctl.adapters.treedir import tree_of
from agentctl.domain.states import HELD, STRANDED, UNKNOWN, Status, task_state, task_status
from agentctl.domain.tree.limits import Limits
from agentctl.domain.worker.projection import TaskView
from agentctl.errors import AgentctlError, StorageError
from agentctl.lean import TYPE_CHECKING, NamedTuple
from agentctl.operations.show.current_state import read_task
from agentctl.operations.show.unreadable import unreadable_problem
from agentctl.operations.where.chosen_task import chosen_task
from agentctl.operations.where.folding import fold
from agentctl.operations.where.ownership import is_own
from agentctl.operations.where.task_config import usable_config
from agentctl.supervision.dispatch.standstill import standstill_of
from agentctl.supervision.queue.queue_hold import QueueHold, QueueHolds
from agentctl.supervision.queue.tickets import Ticket
from agentctl.supervision.worker.endings import decision_of

if TYPE_CHECKING:
    from agentctl.domain.documents.tasks import SubtaskFacts, TaskRow


class _TaskFacts(NamedTuple):
    """What was read of a task."""

    task: TaskDir
    view: TaskView
    config: TaskConfig
    #: The ids of its sub-tasks that exist.
    below: list[str]
    #: How many of its workers are stranded.
    stranded: int
    #: What holds its queue, and whether any of its workers is kept in a queue by that or another hold.
    hold: QueueHold | None = None
    has_held: bool = False
    #: Why nothing is known of it: what cannot be read.
    unreadable: StorageError | None = None


#: The states of a task at work, which those above it are in too; the more pressing first.
_AT_WORK = ("input-required", "working", STRANDED, HELD)


class _Standing(NamedTuple):
    """The state of a task, and what of it is due to its sub-tasks."""

    state: str
    #: A sub-task works or asks, or a worker of its own has ended and waits for the workers that it started.
    awaits_children: bool
    #: How many of its workers are blocked, and how many of those of all tasks below it.
    blocked: int
    blocked_below: int


class TaskRows(NamedTuple):
    """A row for each task of a root, and what could not be read."""

    rows: list[TaskRow]
    unreadable: list[StorageError]


def list_tasks(root: Root) -> TaskRows:
    """Return a row for each task of a root, in the order of an outline: each task is followed by its sub-tasks."""
    current = chosen_task(root)
    standstills = _Standstills()
    facts = {task_id: _read_facts(root.task(task_id), standstills) for task_id in root.task_ids()}
    outline = list(_outline(facts))
    standings: dict[str, _Standing] = {}
    for task_id, _ in reversed(outline):  # Those below a task come after it, unless a forged cycle makes that untrue.
        one = facts[task_id]
        standings[task_id] = _standing(one, [standings[name] for name in one.below if name in standings])
    rows: list[TaskRow] = []
    unreadable: list[StorageError] = []
    for name, level in outline:
        one = facts[name]
        try:
            row = _row(one, current, level, standings[name])
        except (AgentctlError, OSError) as error:
            one = _unknown(one.task, unreadable_problem(error))
            row = _row(one, current, level, _standing(one, []))
        rows.append(row)
        unreadable += [one.unreadable] if one.unreadable is not None else []
    return TaskRows(rows, unreadable)


def _outline(facts: Mapping[str, _TaskFacts]) -> Iterator[tuple[str, int]]:
    """Yield each task once with its level, sub-tasks below the task that asked for them; forged cycles are cut."""
    below = {name for one in facts.values() for name in one.below}
    left = dict.fromkeys(facts)
    for first in [*(name for name in facts if name not in below), *facts]:
        stack = [(first, 0)]
        while stack:
            name, level = stack.pop()
            if name in left:
                del left[name]
                yield name, level
                stack += [(child, level + 1) for child in reversed(facts[name].below)]


class _Standstills:
    """The stranded workers of each tree of tasks, looked for once."""

    def __init__(self) -> None:
        self._found: dict[str, list[Ticket]] = {}

    def of(self, task: TaskDir) -> list[Ticket]:
        """Return the stranded workers of the tree to which a task belongs."""
        top = tree_of(task)
        if top.id not in self._found:
            self._found[top.id] = standstill_of(top).tickets
        return self._found[top.id]


def _unknown(task: TaskDir, problem: StorageError) -> _TaskFacts:
    return _TaskFacts(task, TaskView(), TaskConfig(limits=Limits()), [], 0, unreadable=problem)


def _read_facts(task: TaskDir, standstills: _Standstills) -> _TaskFacts:
    try:
        return _readable_facts(task, standstills)
    except (AgentctlError, OSError) as error:
        return _unknown(task, unreadable_problem(error))


def _readable_facts(task: TaskDir, standstills: _Standstills) -> _TaskFacts:
    from agentctl.operations.where.subtasks_below import subtasks_of

    stranded, hold, has_held = 0, None, False
    try:
        view = fold(task)
        if is_own(task):
            holds = QueueHolds(tree_of(task))
            queued = [name for name, worker in view.workers.items() if worker.status is Status.QUEUED]
            hold, has_held = holds.of_task(task.id), any(holds.of(task.worker(name)) for name in queued)
        if any(not worker.is_terminal for worker in view.workers.values()) and is_own(task):
            stranded = sum(ticket.task_id == task.id for ticket in standstills.of(task))
        if stranded:  # Who was to move the queue is gone: its other workers may be lost too.
            view, _ = read_task(task)
    except OddFile:  # It is listed all the same; commands that read it say why.
        view = TaskView()
    below = [below.id for below in subtasks_of(task, view.subtasks)]
    return _TaskFacts(task, view, usable_config(task), below, stranded, hold, has_held)


def _standing(one: _TaskFacts, below: Sequence[_Standing]) -> _Standing:
    """Return the state of a task: that of its own workers, unless it has none or a sub-task works or asks."""
    workers, states = [*one.view.newest()], {task.state for task in below}
    at_rest = STRANDED if one.stranded else HELD if one.has_held else None
    own = task_state((worker.status for worker in workers), at_rest=at_rest)
    if not workers and states:
        own = next((state for state in ("failed", "canceled", "completed") if state in states), own)
    return _Standing(
        next((state for state in _AT_WORK if state in {own, *states}), own),
        any(state in states for state in _AT_WORK) or any(worker.awaits_children for worker in workers),
        sum(worker.status is Status.BLOCKED for worker in workers),
        sum(task.blocked + task.blocked_below for task in below),
    )


def _row(one: _TaskFacts, current: str | None, level: int, standing: _Standing) -> TaskRow:
    task, config = one.task, one.config
    statuses = [worker.status for worker in one.view.newest()]
    state = standing.state if one.unreadable is None else UNKNOWN
    row: TaskRow = {
        "taskId": task.id,
        "title": config.title,
        "state": state,
        "status": task_status(state),
        "workers": len(statuses),
        "queued": statuses.count(Status.QUEUED),
        "running": statuses.count(Status.RUNNING),
        "blocked": statuses.count(Status.BLOCKED),
        "completed": statuses.count(Status.COMPLETED),
        "failed": statuses.count(Status.FAILED),
        "cancelled": statuses.count(Status.CANCELLED),
        "stranded": one.stranded,
        "held": None if one.hold is None else one.hold.to_json(),
        "createdAt": config.created_at,
        "parentTaskId": config.parent_task_id,
        "childTaskIds": one.below,
        "level": level,
        "awaitsChildren": standing.awaits_children,
        "blockedBelow": standing.blocked_below,
        "current": task.id == current,
        "own": None if one.unreadable else is_own(task),
        "path": str(task.path),
    }
    if one.unreadable is not None:
        return {**row, "unreadable": one.unreadable.message}
    return {**row, **_of_subtask(one)} if config.parent_task_id else row


def _of_subtask(one: _TaskFacts) -> SubtaskFacts:
    """Return the additional keys of a sub-task: its author, its one agent, and that agent's summary or failure."""
    from agentctl.operations.show.results import declared_summary
    from agentctl.operations.show.subtask_answer import subtask_reason

    subtask: SubtaskFacts = {"author": one.config.author, "agent": one.config.agent}
    worker = next(iter(one.view.workers.values()), None)
    if worker is None or not worker.is_terminal or not is_own(one.task):
        return {**subtask, "summary": None, "failureReason": None}
    worker_dir = one.task.worker(worker.instance)
    failure = None if worker.status is Status.COMPLETED else subtask_reason(decision_of(worker_dir))
    return {**subtask, "summary": declared_summary(read_known(worker_dir.result)), "failureReason": failure}
