"""Holds the queue of a task and lets it go: what is in it stays there, what is at work goes on."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from agentctl.adapters import eventlog
from agentctl.adapters.clock import now_iso
from agentctl.adapters.taskdir import TaskDir
from agentctl.adapters.treedir import tree_of
from agentctl.domain import events as ev
from agentctl.errors import AgentctlError, Refused
from agentctl.operations.where.lineage import shown_caller, who
from agentctl.operations.where.ownership import check_own, is_own
from agentctl.operations.where.task_config import usable_config
from agentctl.supervision.dispatch.dispatch import dispatch
from agentctl.supervision.queue.queue_hold import QueueHold, QueueHolds, end_hold, hold_queue, read_holds
from agentctl.supervision.queue.tickets import read_queue

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.ends import QueueStanding

_PERSON = "user"


def hold_task(task: TaskDir) -> QueueStanding:
    """Hold the queue of a task, with those of the tasks below it; once this returns, nothing of it is started."""
    check_own(task)
    by = who()
    if hold_queue(tree_of(task), task, by):
        _note(task, ev.QUEUE_HELD, by)
    return _standing(task)


def let_task_go(task: TaskDir) -> QueueStanding:
    """End the hold of a task's queue, and start what may start.

    Raises:
        Refused: A worker wants to end the hold of a person; or something else keeps its queue held.
    """
    check_own(task)
    tree, by = tree_of(task), who()
    usable_config(tree)  # Makes a raised cap known to all that dispatch.
    own = read_holds(tree).get(task.id)
    if own is not None and own.by == _PERSON and shown_caller() is not None:
        raise Refused(f"{by} may not let the queue of {task.id} go: a person holds it", hint="leave that to them")
    if end_hold(tree, task):
        _note(task, ev.QUEUE_LET_GO, by)
    elif (hold := QueueHolds(tree).of_task(task.id)) is not None:
        raise Refused(
            f"the queue of {task.id} is held for another reason: {hold.in_words(tree)}", hint=hold.next_step()
        )
    run_queue(task)
    return _standing(task)


def run_queue(task: TaskDir) -> None:
    """Start what may start in the queue of a task's tree, as far as a broken disk lets it: or who looks next does."""
    tree = tree_of(task)
    with contextlib.suppress(AgentctlError, OSError):
        if is_own(tree):
            dispatch(tree)


def _note(task: TaskDir, kind: str, by: str) -> None:
    with contextlib.suppress(AgentctlError, OSError):  # A disk that refuses the event: the hold counts without it.
        eventlog.append(task.events, [ev.make_event(now_iso(), kind, task.id, by, {})])


def _standing(task: TaskDir) -> QueueStanding:
    """Return whether a task's queue is held, and how many workers that keeps in it."""
    tree = tree_of(task)
    holds = QueueHolds(tree)
    hold: QueueHold | None = holds.of_task(task.id)
    queued = sum(holds.of_task(ticket.task_id) == hold for ticket in read_queue(tree)) if hold else 0
    return {"taskId": task.id, "held": None if hold is None else hold.to_json(), "queued": queued}
