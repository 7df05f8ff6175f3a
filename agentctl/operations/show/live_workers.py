"""Judges the workers whose end is not in the log: what is proven of them is recorded, or healed in memory.

Of a worker whose files cannot be read nothing is recorded: its view says what was refused, and the others are judged.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from agentctl.adapters.eventlog import LogReader
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.adapters.treedir import tree_of
from agentctl.domain.states import Status
from agentctl.domain.worker.projection import TaskView, WorkerView
from agentctl.errors import AgentctlError
from agentctl.operations.show.unreadable import noting_unreadable
from agentctl.supervision.life.judging import Condition, judge_surely, lost_ending, queued_instances, settle
from agentctl.supervision.worker import deferred, questions
from agentctl.supervision.worker.endings import decision_of, held_end


def judge_workers(
    task: TaskDir,
    view: TaskView,
    reader: LogReader,
    workers: Iterable[WorkerView],
    exits: Mapping[str, tuple[int, int]] = MappingProxyType({}),
) -> dict[str, Condition]:
    """Judge workers of a view, record what is proven, and read that back; return the condition of each.

    Args:
        reader: The reader of the log from which the view is made.
        exits: The exits that a wait saw of workers without a shim.
    """
    queued, conditions = queued_instances(task), {}
    for worker in workers:
        worker_dir = task.worker(worker.instance)
        # The ticket of a started worker is a leftover of a killed shim.
        tickets = queued if worker.status is Status.QUEUED else ()
        worker.unreadable, conditions[worker.instance] = None, Condition.UNKNOWN
        with noting_unreadable(worker):
            condition = conditions[worker.instance] = judge_surely(worker_dir, tickets)
            with contextlib.suppress(AgentctlError, OSError):
                settle(worker_dir, condition, exits.get(worker.instance))
    view.apply(reader.rows())
    _look_at_queue(task, conditions)
    conditions = {name: condition for name, condition in conditions.items() if name in view.workers}  # Some removed.
    for instance, condition in conditions.items():
        with noting_unreadable(view.workers[instance]):
            _heal(view.workers[instance], condition, task.worker(instance))
    return conditions


def _look_at_queue(task: TaskDir, conditions: dict[str, Condition]) -> None:
    """Judge the queued workers once more: whether their queue moves. Those who are lost are settled by now."""
    queued = [instance for instance, condition in conditions.items() if condition is Condition.QUEUED]
    if queued:
        from agentctl.supervision.dispatch.standstill import standstill_of  # Most tasks have nobody in the queue.
        from agentctl.supervision.queue.queue_hold import QueueHolds

        tree = tree_of(task)
        with contextlib.suppress(AgentctlError):  # What is held cannot be known: those who start workers say so.
            holds = QueueHolds(tree)
            held = [instance for instance in queued if holds.of(task.worker(instance)) is not None]
            conditions.update((instance, Condition.HELD) for instance in held)
        for ticket in standstill_of(tree).tickets:
            if ticket.task_id == task.id and conditions.get(ticket.instance) in (Condition.QUEUED, Condition.HELD):
                conditions[ticket.instance] = Condition.STRANDED


def _heal(worker: WorkerView, condition: Condition, worker_dir: WorkerDir) -> None:
    """Correct a worker in memory where its end could not be recorded, or where its askers have gone."""
    if worker.is_terminal or condition not in (Condition.ENDED, Condition.LOST):
        if worker.status is Status.BLOCKED and not questions.waiting_askers(worker_dir):
            worker.status = Status.RUNNING
        if worker.is_terminal:
            return
        worker.refused = deferred.standing(worker_dir)
        return
    decision = decision_of(worker_dir) or held_end(worker_dir) or lost_ending(worker_dir).now()
    worker.status, worker.reason, worker.message = decision.status, decision.reason, decision.message
    worker.last_line = decision.last_line
    worker.exit_code, worker.signal, worker.ended_at = decision.exit_code, decision.signal, decision.ended_at
