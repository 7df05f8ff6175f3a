"""Judges the condition of a worker whose end is not in the log, and writes down what is proven."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum

from agentctl.adapters import processes
from agentctl.adapters.files import read_known
from agentctl.adapters.locks import is_alive_held, locked
from agentctl.adapters.processes import Life
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.adapters.taskyaml import roster
from agentctl.adapters.treedir import tree_of
from agentctl.domain.states import HELD, STRANDED, UNKNOWN, Reason, Status
from agentctl.domain.worker.ends import HIDDEN
from agentctl.supervision import failpoints
from agentctl.supervision.life.belonging import Record, claim_of, record_of
from agentctl.supervision.life.process_tree import UnsupervisedTree
from agentctl.supervision.life.strangers import is_guardian
from agentctl.supervision.queue.places import shim_beside
from agentctl.supervision.queue.tickets import read_queue, show_left_behind
from agentctl.supervision.worker import deferred
from agentctl.supervision.worker.driver_end import end_of_attempt
from agentctl.supervision.worker.endings import (
    Decision,
    decide,
    decision_of,
    from_wait_status,
    held_end,
    parked_as,
    publish,
    was_started,
)
from agentctl.supervision.worker.placed import has_launch, is_away, verdict_of
from agentctl.supervision.worker.spec import is_for_node, is_placed


class Condition(Enum):
    """Who looks after a worker."""

    #: Its end is decided (exit.json is there).
    ENDED = "ended"
    #: A live shim guards it.
    SUPERVISED = "supervised"
    #: A ticket waits for it in the queue.
    QUEUED = "queued"
    #: A ticket waits for it, and nobody moves the queue any more (`dispatch.standstill`).
    STRANDED = STRANDED
    #: A ticket waits for it, and its queue is held (`queue.queue_hold`).
    HELD = HELD
    #: Its shim is gone, something of it is alive.
    UNSUPERVISED = "unsupervised"
    #: It and its shim are proven gone; nobody saw the exit.
    LOST = "lost"
    #: On another machine or in another pid namespace: it cannot be judged from here.
    ELSEWHERE = "elsewhere"
    #: It was placed on a node, and its shim here is gone: how it is there is not known, and another shim takes it over.
    UNFOLLOWED = "unfollowed"
    #: Its files cannot be read. Only a view says so, to show the others: whoever decides gets the error.
    UNKNOWN = UNKNOWN

    @property
    def is_queued(self) -> bool:
        """Whether a ticket waits for the worker."""
        return self in (Condition.QUEUED, Condition.STRANDED, Condition.HELD)


def queued_instances(task: TaskDir) -> set[str]:
    """Return the workers of a task that have a ticket."""
    return {ticket.instance for ticket in read_queue(tree_of(task)) if ticket.task_id == task.id}


def judge(worker: WorkerDir, queued: Collection[str] | None = None) -> Condition:
    """Judge a worker by its files and the kernel.

    Args:
        queued: The instances with a ticket, read before this call.

    The order of the checks makes the result true. A ticket is removed only after the shim's lock is held, and the lock
    is released only after exit.json exists: no ticket, then no lock, then no exit.json prove that none will be written.
    """
    has_ticket = worker.instance in (queued_instances(worker.task) if queued is None else queued)
    # The ticket of a started worker is a leftover or a forgery.
    if has_ticket and not (worker.process.exists() and was_started(worker)):
        return Condition.ENDED if worker.has_ended else Condition.QUEUED
    if is_alive_held(worker.shim):
        # What the worker itself wrote there is not an end: its shim will decide one.
        return Condition.ENDED if worker.has_ended and decision_of(worker) else Condition.SUPERVISED
    if worker.has_ended or _is_parked(worker):
        return Condition.ENDED if worker.has_ended else Condition.QUEUED
    return _judge_unguarded(worker)


def _judge_unguarded(worker: WorkerDir) -> Condition:
    """Judge a worker that has been started, and has neither an end nor a shim."""
    # A power cut may have emptied the identity files: they are not fsynced, since it ends their processes too.
    record = record_of(worker)
    identity = record.leader
    if identity is None and (shim := _shim_by_its_place(worker)) is not None:
        return shim
    if identity is not None and processes.life_of(identity) is Life.ELSEWHERE:
        return Condition.ELSEWHERE
    if is_placed(worker) and is_away(worker):
        return Condition.UNFOLLOWED
    if identity is not None and identity.boot != processes.boot_id():
        return Condition.LOST
    claim = claim_of(worker, record)
    if claim.is_led or not UnsupervisedTree(claim).is_gone():
        return Condition.UNSUPERVISED
    return Condition.LOST


def _is_parked(worker: WorkerDir) -> bool:
    """Return whether a worker without a shim is parked in the queue; finish what its shim had begun."""
    if not worker.attempt_exit(1).exists() or parked_as(worker) is None:
        return False
    return show_left_behind(tree_of(worker.task), worker.id)


def _shim_by_its_place(worker: WorkerDir) -> Condition | None:
    """Judge a worker without a worker.json by its shim: it has not started, or its folder was removed while it ran."""
    tree = tree_of(worker.task)
    shim = processes.identity_from(read_known(worker.shim))
    if shim is None:
        shim = shim_beside(tree.slots, worker.id)
        if shim is not None and is_guardian(shim, tree):
            return Condition.SUPERVISED
    return Condition.ELSEWHERE if shim and processes.life_of(shim) is Life.ELSEWHERE else None


def judge_surely(worker: WorkerDir, queued: Collection[str] | None = None) -> Condition:
    """Judge a worker as `judge` does; if it seems lost, judge once more, by the tickets of that moment.

    The first look may have begun before its ticket was shown. Without a shim, its spawn may still be about to show the
    ticket, and holds the queue's lock until it has. So this must not be called under that lock.
    """
    condition = judge(worker, queued)
    if condition is not Condition.LOST:
        return condition
    failpoints.reached("judge.seems-lost")
    if worker.shim.exists():  # Its ticket has been shown by now.
        return judge(worker)
    with locked(tree_of(worker.task).queue_lock):
        return judge(worker)


def settle(worker: WorkerDir, condition: Condition, seen: tuple[int, int] | None = None) -> bool:
    """Write down what `condition` proves: the missing event of an end, or that a worker is lost.

    Args:
        seen: The exit of a worker without a shim, if a process that held its pidfd saw it (`processes.exit_of`).

    Returns:
        Whether the worker has ended.
    """
    decision = None
    if condition is Condition.LOST:
        # Of a worker on a node, what was seen here was its stand-in.
        decision = decide(worker, held_end(worker) or _ending_of_gone(worker, seen))
    elif condition is not Condition.ENDED:
        return False
    publish(worker, decision)
    deferred.clear(worker)
    roster.mark_stale(worker.task)  # The shim that owed the roster this row may be gone.
    return True


def _ending_of_gone(worker: WorkerDir, seen: tuple[int, int] | None) -> Decision:
    return _seen_ending(worker, seen) if seen and not is_for_node(worker) else lost_ending(worker)


def _seen_ending(worker: WorkerDir, seen: tuple[int, int]) -> Decision:
    """Return the ending of a worker whose shim was gone, but whose exit a wait saw."""
    status, reason, code, name = from_wait_status(*seen)
    record = record_of(worker)
    ending = _driver_ending(worker, record) or Decision(
        status=status,
        reason=reason,
        message=f"its shim was gone; a wait saw the exit, and {HIDDEN}",
        started_at=record.started_at,
        attempt=record.attempt,
        unguarded=True,
    )
    return ending._replace(exit_code=code, signal=name)


def lost_ending(worker: WorkerDir) -> Decision:
    """Return the ending of a worker that is proven gone: it never started, or nobody saw how it ended.

    An agent's driver may have reported the end before.
    """
    record = record_of(worker)
    if record.leader is None and not was_started(worker):  # A power cut may have emptied the file.
        message = "its shim died before the worker was started"
        return Decision(status=Status.FAILED, reason=Reason.NOT_STARTED, message=message)
    message = "worker and shim are gone (killed, or the machine was restarted); the exit was not seen"
    may_hide = _is_of_this_boot(record)
    return _placed_ending(worker, record) or _driver_ending(worker, record) or Decision(
        status=Status.FAILED, reason=Reason.LOST, message=f"{message}, and {HIDDEN}" if may_hide else message,
        started_at=record.started_at, attempt=record.attempt, unguarded=may_hide,
    )  # fmt: skip


def is_unguarded(worker: WorkerDir, decision: Decision | None) -> bool:
    """Return whether a worker has ended without its shim, and what it had hidden before may be alive.

    Args:
        decision: That about its end; None if there is none.
    """
    return bool(decision and decision.unguarded and _is_of_this_boot(record_of(worker)))


def _is_of_this_boot(record: Record) -> bool | None:
    """Return whether a worker was started since the machine was; None if not, or if that is not known."""
    return (record.leader is not None and record.leader.boot == processes.boot_id()) or None


def _placed_ending(worker: WorkerDir, record: Record) -> Decision | None:
    """Return the ending of a worker that was to run on a node; None for any other, and where it is not known."""
    if not is_for_node(worker):
        return None
    verdict = verdict_of(worker, record.attempt)
    if verdict is not None:
        started_at = verdict.started_at or record.started_at
        return verdict._replace(attempt=record.attempt, started_at=started_at, ended_at=None)
    if has_launch(worker, record.attempt):
        return None
    message = "the process that was to give it to its engine was killed before it did so"
    return Decision(
        status=Status.FAILED, reason=Reason.NOT_STARTED, message=message, started_at=record.started_at,
        attempt=record.attempt,
    )  # fmt: skip


def _driver_ending(worker: WorkerDir, record: Record) -> Decision | None:
    """Return the ending that an agent's driver reported; None if it reported none, or if the attempt was retried."""
    end = end_of_attempt(worker, record.leader and record.leader.pid)
    if end is None or worker.attempt_exit(record.attempt).exists():
        return None
    message = end.message or "its shim was gone; its driver had reported the end"
    return Decision(
        status=end.status, reason=end.reason, message=message, started_at=record.started_at, attempt=record.attempt,
        unguarded=_is_of_this_boot(record),
    )  # fmt: skip
