"""What goes on after everything was killed, or the machine was restarted: lost agents, and the queues of a root."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from agentctl.adapters.clock import iso_of, since_boot
from agentctl.adapters.taskdir import Root, TaskDir, TreeDir
from agentctl.adapters.treedir import trees_of
from agentctl.domain.states import Reason, Status
from agentctl.domain.worker.projection import WorkerView
from agentctl.errors import AgentctlError
from agentctl.lean import NamedTuple
from agentctl.operations.delegate.resuming import lost_agents, resume_lost
from agentctl.operations.start.requests import Spawned
from agentctl.operations.start.requeuing import requeue_workers
from agentctl.operations.where.ownership import check_own, is_own
from agentctl.supervision.dispatch.standstill import standstill_of
from agentctl.supervision.queue.tickets import read_queue

#: What was lost longer ago was left alone by somebody.
_FRESH_S = 24 * 3600.0


class LeftAlone(NamedTuple):
    """The agents of a task that were lost before, and that are continued only if the task is named."""

    task: TaskDir
    instances: list[str]
    #: When the last loss of these was found.
    lost_at: str


class Recovered(NamedTuple):
    """What goes on, and what does not."""

    #: The workers that were stranded in a queue, then the new workers that continue lost agents.
    workers: list[Spawned]
    #: Why a task, or an agent, could not go on.
    problems: list[AgentctlError]
    left: list[LeftAlone]


def recover_task(task: TaskDir) -> Recovered:
    """Move the queue of a task's tree, and continue the agents of the task that a crash has ended.

    Raises:
        Refused: The task is not this person's own.
    """
    check_own(task)
    return _recover([task], lambda _task, _worker: True)


def recover_root(root: Root, chosen: TaskDir | None) -> Recovered:
    """Move all queues of a root, and continue the agents that were found lost since the machine was started.

    What was found lost before its last start, or more than a day ago, could have been continued then: it is left alone.
    An agent whose program alone was killed is continued in the chosen task only.

    Raises:
        Refused: The chosen task is not this person's own; other such tasks are left alone.
    """
    if chosen is not None:
        check_own(chosen)
    oldest = iso_of(time.time() - _fresh_s(since_boot()))

    def is_meant(task: TaskDir, worker: WorkerView) -> bool:
        is_chosen = chosen is not None and task.id == chosen.id
        return (is_chosen or worker.reason == Reason.LOST) and (worker.ended_at or "") >= oldest

    return _recover([task for task in map(root.task, root.task_ids()) if is_own(task)], is_meant)


def _fresh_s(since_boot_s: float) -> float:
    """Return for how long what was lost is taken for what is wanted back.

    >>> _fresh_s(60.0), _fresh_s(200 * 24 * 3600.0)
    (60.0, 86400.0)
    """
    return min(since_boot_s, _FRESH_S)


def _recover(tasks: Sequence[TaskDir], is_meant: Callable[[TaskDir, WorkerView], bool]) -> Recovered:
    """Move the queues, then queue the lost agents behind: only the look at a queue decides who starts in it."""
    found = Recovered([], [], [])
    for tree in trees_of(tasks):
        _collect(found, lambda tree=tree: (_move_queue(tree), []))  # type: ignore[misc]
    for task in tasks:
        _collect(found, lambda task=task: _continue_lost(task, is_meant, found.left))  # type: ignore[misc]
    return found


def _continue_lost(
    task: TaskDir, is_meant: Callable[[TaskDir, WorkerView], bool], left: list[LeftAlone]
) -> tuple[list[Spawned], list[AgentctlError]]:
    lost = list(lost_agents(task))
    others = [one for one in lost if one.reason == Reason.LOST and not is_meant(task, one)]
    if others:
        lost_at = max(one.ended_at or "" for one in others)
        left.append(LeftAlone(task, [one.instance for one in others], lost_at))
    return resume_lost(task, [one for one in lost if is_meant(task, one)])


def _collect(found: Recovered, recover: Callable[[], tuple[list[Spawned], list[AgentctlError]]]) -> None:
    """Do one part; what stands in the way of it must not hold up the others."""
    try:
        workers, problems = recover()
    except AgentctlError as error:
        workers, problems = [], [error]
    found.workers.extend(workers)
    found.problems.extend(problems)


def _move_queue(tree: TreeDir) -> list[Spawned]:
    if not is_own(tree) or not read_queue(tree):
        return []
    stranded = standstill_of(tree).tickets
    requeue_workers(tree)
    return [Spawned(ticket.instance, Status.QUEUED, ticket.task_id, message="its queue goes on") for ticket in stranded]
