"""Asking for the end of a worker, whatever its condition: a durable request, and whoever carries it out is woken.

Commands do it, and shims, which pass a cancel on to the workers that theirs have started.
"""

from __future__ import annotations

import contextlib
import signal
from enum import Enum

from agentctl.adapters import eventlog, processes
from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import create_whole, make_folder, read_quietly, to_json, write_whole
from agentctl.adapters.locks import locked
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import AgentDir
from agentctl.adapters.taskyaml.cache import root_of_tree
from agentctl.adapters.taskyaml.roster import Row, update
from agentctl.domain import events as ev
from agentctl.domain.states import Status
from agentctl.errors import AgentctlError
from agentctl.lean import Any, NamedTuple
from agentctl.supervision import failpoints
from agentctl.supervision.dispatch.slots import is_being_started
from agentctl.supervision.life.belonging import record_of
from agentctl.supervision.life.judging import Condition, judge, judge_surely, settle
from agentctl.supervision.life.strangers import is_guardian
from agentctl.supervision.queue.places import shim_beside
from agentctl.supervision.queue.tickets import forget_environment, read_queue, remove_ticket
from agentctl.supervision.stop.undertaker import begin_burial
from agentctl.supervision.worker import environment
from agentctl.supervision.worker.control import poke
from agentctl.supervision.worker.endings import Ending, clear_no_decision, decide, publish
from agentctl.supervision.worker.spec import asked_grace, read_spec


class Request(NamedTuple):
    """Who wants the end of a worker, and how."""

    by: str
    #: Another grace period than the worker's own.
    grace_s: float | None = None
    #: Where environments wait; a shim, whose own environment is empty, was told.
    folder: FilePath | None = None


class Answer(Enum):
    """What came of asking."""

    #: It has ended before.
    ENDED = "ended"
    #: It is on another machine or in another pid namespace, and was not asked.
    ELSEWHERE = "elsewhere"
    #: It was in the queue, and has ended there.
    WITHDRAWN = "withdrawn"
    #: Its guardian carries the request out.
    UNDER_WAY = "under way"


def request_end(agent: AgentDir, request: Request) -> Answer:
    """Do what the worker's condition asks for."""
    clear_no_decision(agent)  # A worker that wrote itself an end which is none would not be cancelled.
    for _ in range(100):  # It may move from the queue to a shim between the look and the act.
        condition = judge_surely(agent)
        match condition:
            case Condition.ENDED | Condition.LOST:
                settle(agent, condition)
                return Answer.ENDED
            case Condition.ELSEWHERE:
                return Answer.ELSEWHERE
            case Condition.QUEUED:
                found = _withdraw(agent, request)
                if found is _Withdrawal.DONE:
                    return Answer.WITHDRAWN
                if found is _Withdrawal.STARTING:
                    _put(agent, request)  # The shim looks for it before it forks, and when it watches.
                    return Answer.UNDER_WAY
            case Condition.SUPERVISED:
                _put(agent, request)
                if _wake(agent):
                    return Answer.UNDER_WAY
            case Condition.UNSUPERVISED:
                _put(agent, request)
                begin_burial(agent)
                return Answer.UNDER_WAY
    raise AgentctlError(f"{agent.instance} does not hold still: its state changed 100 times", hint="try again")


def _wake(agent: AgentDir) -> bool:
    """Make the shim look at the request; False where it has gone meanwhile."""
    _wake_stopped(agent)
    return poke(agent) or judge(agent) is Condition.SUPERVISED


def _wake_stopped(agent: AgentDir) -> None:
    """Continue a shim that somebody stopped: it could not act on a cancel.

    Only what was executed as a guardian in this tree of tasks: the files may name anybody.
    """
    root = root_of_tree(agent.task)
    for shim in (
        processes.identity_from(read_quietly(agent.shim)),
        shim_beside(root.slots, agent.task.id, agent.instance),
    ):
        stat = processes.read_stat(shim.pid) if shim else None
        if shim is not None and stat is not None and stat.state in "Tt" and is_guardian(shim, root):
            processes.send(shim, signal.SIGCONT)


def _put(agent: AgentDir, request: Request) -> None:
    grace_s = request.grace_s
    body: dict[str, Any] = {"by": request.by, "at": now_iso()}
    if grace_s is not None:
        body["graceSeconds"] = grace_s
    make_folder(agent.path)  # Somebody may have removed it under a running worker.
    if not agent.cancel.exists() and create_whole(agent.cancel, to_json(body)):
        event = ev.make_event(now_iso(), ev.CANCEL_REQUESTED, agent.task.id, request.by, {}, agent.instance)
        with contextlib.suppress(AgentctlError):  # The request is on disk; its event is only for readers.
            eventlog.append(agent.task.events, [event])
    elif grace_s is not None and ((asked := asked_grace(agent)) is None or grace_s < asked):
        write_whole(agent.cancel, to_json({**read_quietly(agent.cancel), "graceSeconds": grace_s}))
    failpoints.reached("cancel.after-request")


class _Withdrawal(Enum):
    """What came of taking a worker out of the queue."""

    #: It is out and has ended.
    DONE = "done"
    #: A shim has been given its ticket and is about to take it.
    STARTING = "starting"
    #: It had left the queue before.
    TOO_LATE = "too late"


def _withdraw(agent: AgentDir, request: Request) -> _Withdrawal:
    """Take a worker out of the queue and end it, unless its start is under way."""
    root = root_of_tree(agent.task)
    with locked(root.queue_lock):
        mine = [t for t in read_queue(root) if (t.task_id, t.instance) == (agent.task.id, agent.instance)]
        if not mine:
            return _Withdrawal.TOO_LATE
        if is_being_started(root, agent.task.id, agent.instance):
            return _Withdrawal.STARTING
        ran, worked = record_of(agent), read_quietly(agent.worked)
        message = "it was waiting in the queue"
        decide(agent, Ending(status=Status.CANCELLED, by=request.by, message=message, started_at=ran.started_at,
                             attempt=ran.attempt, worked=worked or None))  # fmt: skip
        for ticket in mine:
            remove_ticket(root, ticket)
            forget_environment(ticket.environment, request.folder or environment.store_folder(), read_queue(root))
    publish(agent)
    with contextlib.suppress(AgentctlError):
        update(agent.task, {agent.instance: Row(read_spec(agent.spec).agent, Status.CANCELLED)})
    return _Withdrawal.DONE
