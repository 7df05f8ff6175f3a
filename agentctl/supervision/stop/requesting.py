"""Requests the end of a worker, whatever its condition: by a durable file, and by waking what carries it out.

Commands do this, and so do shims, which pass a cancel on to the children of their workers.
"""

from __future__ import annotations

import contextlib
import signal
from enum import Enum

from agentctl.adapters import processes
from agentctl.adapters.files import read_quietly
from agentctl.adapters.locks import locked
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import WorkerDir
from agentctl.adapters.taskyaml.cache import root_task_of
from agentctl.adapters.taskyaml.roster import RosterRow, update
from agentctl.domain.states import Status
from agentctl.errors import AgentctlError
from agentctl.lean import NamedTuple
from agentctl.supervision.dispatch.slots import is_being_started
from agentctl.supervision.dispatch.taking_over import take_over
from agentctl.supervision.life.belonging import record_of
from agentctl.supervision.life.judging import Condition, judge, judge_surely, settle
from agentctl.supervision.life.strangers import is_guardian
from agentctl.supervision.queue.places import shim_beside
from agentctl.supervision.queue.tickets import take_out, tickets_of
from agentctl.supervision.stop.undertaker import begin_burial
from agentctl.supervision.worker import environment
from agentctl.supervision.worker.cancel_request import put_request
from agentctl.supervision.worker.control import poke
from agentctl.supervision.worker.endings import Decision, clear_no_decision, decide, publish
from agentctl.supervision.worker.spec import read_spec


class Request(NamedTuple):
    """Who wants the end of a worker, and how."""

    by: str
    #: Another grace period than the worker's own.
    grace_s: float | None = None
    #: Where environments wait; set by a shim, whose own environment is empty.
    folder: FilePath | None = None


class Answer(Enum):
    """The outcome of a request."""

    #: It had ended before.
    ENDED = "ended"
    #: It is on another machine or in another pid namespace, and was not asked.
    ELSEWHERE = "elsewhere"
    #: It was in the queue, and has ended there.
    WITHDRAWN = "withdrawn"
    #: Its guardian carries the request out.
    UNDER_WAY = "under way"


def request_end(worker: WorkerDir, request: Request) -> Answer:
    """Do what the worker's condition requires to make it end."""
    clear_no_decision(worker)  # A worker that wrote a false end itself would not be cancelled.
    for _ in range(100):  # It may move from the queue to a shim between the look and the act.
        condition = judge_surely(worker)
        match condition:
            case Condition.ENDED | Condition.LOST:
                settle(worker, condition)
                return Answer.ENDED
            case Condition.ELSEWHERE:
                return Answer.ELSEWHERE
            case Condition.QUEUED:
                found = _withdraw(worker, request)
                if found is _Withdrawal.DONE:
                    return Answer.WITHDRAWN
                if found is _Withdrawal.STARTING:
                    # The shim looks for it before it forks, and when it watches.
                    put_request(worker, request.by, request.grace_s)
                    return Answer.UNDER_WAY
            case Condition.SUPERVISED:
                put_request(worker, request.by, request.grace_s)
                if _wake(worker):
                    return Answer.UNDER_WAY
            case Condition.UNSUPERVISED | Condition.UNFOLLOWED:
                put_request(worker, request.by, request.grace_s)
                # Of a worker on a node, only the shim there can prove that it is gone: another one here asks it.
                begin_burial(worker) if condition is Condition.UNSUPERVISED else take_over(worker)
                return Answer.UNDER_WAY
    raise AgentctlError(f"{worker.instance} could not be cancelled: its state changed 100 times", hint="try again")


def _wake(worker: WorkerDir) -> bool:
    """Make the shim look at the request; return False if it has gone meanwhile."""
    _wake_stopped(worker)
    return poke(worker) or judge(worker) is Condition.SUPERVISED


def _wake_stopped(worker: WorkerDir) -> None:
    """Continue a shim that somebody stopped: it could not act on a cancel.

    Only a process that was executed as a guardian in this tree of tasks: the files may name any process.
    """
    root_task = root_task_of(worker.task)
    for shim in (
        processes.identity_from(read_quietly(worker.shim)),
        shim_beside(root_task.slots, worker.id),
    ):
        stat = processes.read_stat(shim.pid) if shim else None
        if shim is not None and stat is not None and stat.state in "Tt" and is_guardian(shim, root_task):
            processes.send(shim, signal.SIGCONT)


class _Withdrawal(Enum):
    """The outcome of taking a worker out of the queue."""

    #: It is out and has ended.
    DONE = "done"
    #: A shim has been given its ticket and is about to take it.
    STARTING = "starting"
    #: It had left the queue before.
    TOO_LATE = "too late"


def _withdraw(worker: WorkerDir, request: Request) -> _Withdrawal:
    """Take a worker out of the queue and end it, unless its start is under way."""
    root_task = root_task_of(worker.task)
    with locked(root_task.queue_lock):
        mine = tickets_of(root_task, worker)
        if not mine:
            return _Withdrawal.TOO_LATE
        if is_being_started(root_task, worker.id):
            return _Withdrawal.STARTING
        ran, worked = record_of(worker), read_quietly(worker.worked)
        message = "it was waiting in the queue"
        decide(worker, Decision(status=Status.CANCELLED, by=request.by, message=message, started_at=ran.started_at,
                             attempt=ran.attempt, worked=worked or None))  # fmt: skip
        take_out(root_task, mine, request.folder or environment.store_folder())
    publish(worker)
    with contextlib.suppress(AgentctlError):
        update(worker.task, {worker.instance: RosterRow(read_spec(worker.spec).agent, Status.CANCELLED)})
    return _Withdrawal.DONE
