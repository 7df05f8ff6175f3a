"""Requests the end of a worker, whatever its condition: by a durable file, and by waking what carries it out.

Commands do this, and so do shims, which pass a cancel on to the children of their workers.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Sequence
from enum import Enum
from functools import partial

from agentctl.adapters import processes
from agentctl.adapters.clock import monotonic
from agentctl.adapters.files import make_folder, read_known
from agentctl.adapters.locks import LOCK_LIMIT_S, locked
from agentctl.adapters.paths import FilePath
from agentctl.adapters.signals import signal
from agentctl.adapters.taskdir import TaskDir, TreeDir, WorkerDir
from agentctl.adapters.taskyaml.roster import RosterRow, update
from agentctl.adapters.treedir import tree_of
from agentctl.domain.names import WorkerId
from agentctl.domain.states import Status
from agentctl.errors import AgentctlError, LockTimeout
from agentctl.lean import NamedTuple
from agentctl.supervision import failpoints
from agentctl.supervision.dispatch.slots import workers_being_started
from agentctl.supervision.dispatch.stop_order import StopOrder, Stopped, leave_order, stop_all, withdraw
from agentctl.supervision.dispatch.taking_over import take_over
from agentctl.supervision.life.judging import Condition, judge, judge_surely, settle
from agentctl.supervision.life.strangers import is_guardian
from agentctl.supervision.queue.places import occupants_in, shim_beside
from agentctl.supervision.queue.tickets import instances_by_task, read_queue, tickets_of
from agentctl.supervision.stop.burial import begin_burial
from agentctl.supervision.worker import deferred, environment
from agentctl.supervision.worker.cancel_request import put_cancel_request
from agentctl.supervision.worker.control import poke
from agentctl.supervision.worker.endings import clear_no_decision, publish, status_at_end
from agentctl.supervision.worker.spec import read_spec

#: So long are running workers left alone for the sake of the queue's lock, which is mostly held for milliseconds.
_PATIENCE_S = 1.0
#: How long a shim may take to see a request that waits in memory: it was just woken.
_TAKEN_UP_S, _LOOK_S = 5.0, 0.02


class Request(NamedTuple):
    """Who wants the end of a worker, and how."""

    by: str
    #: Another grace period than the worker's own.
    grace_s: float | None = None
    #: Where environments wait; set by a shim, whose own environment is empty.
    folder: FilePath | None = None

    def store(self) -> FilePath:
        """Return where environments wait."""
        return self.folder or environment.store_folder()


class Answer(Enum):
    """The outcome of a request."""

    #: It had ended before.
    ENDED = "ended"
    #: It is on another machine or in another pid namespace, and was not asked.
    ELSEWHERE = "elsewhere"
    #: It was in the queue, and has ended there.
    WITHDRAWN = "withdrawn"
    #: It is in the queue, which cannot be changed now, and will not start.
    BARRED = "barred"
    #: Its guardian carries the request out.
    UNDER_WAY = "under way"


class RequestedEnds(NamedTuple):
    """The outcome of one decision about several workers."""

    answers: list[tuple[WorkerDir, Answer]]
    #: Those that were in the queue when the decision was made, and had been started before it was on disk.
    started: list[WorkerDir]


def request_ends(workers: Sequence[WorkerDir], request: Request, *, also_of: Sequence[TaskDir] = ()) -> RequestedEnds:
    """Make workers end by one decision for each tree of tasks: from then on, none of them is started.

    One worker alone needs no such decision, nor the queue's lock, unless it is in the queue.

    Args:
        also_of: Tasks of which every worker is meant that is in the queue or at work, named or not.

    Raises:
        LockTimeout: The queue's lock could not be had: those that run have been asked, and whoever has the lock next
            ends those in the queue.
        StorageError: The disk refused. Every worker has been tried.
    """
    if len(workers) == 1 and not also_of:
        return RequestedEnds([(workers[0], request_end(workers[0], request))], [])
    ended_before = {worker.id for worker in workers if worker.has_ended}
    members = [(tree_of(worker.task), worker) for worker in workers]
    tasks = [(tree_of(task), task.id) for task in also_of]
    ends, problems = RequestedEnds([], []), list[AgentctlError | OSError]()
    for tree in {tree.path: tree for tree, _ in (*members, *tasks)}.values():
        mine = [worker for one, worker in members if one.path == tree.path]
        waiting = _waiting(tree)
        failpoints.reached("stop.before-order")
        try:
            also = {task_id for one, task_id in tasks if one.path == tree.path}
            stopped = _decide(tree, mine, also, waiting, request)
            _ask_each(tree, mine, stopped, waiting, request, ends)
        except (AgentctlError, OSError) as error:
            problems.append(error)
    if problems:
        raise problems[0]
    return ends._replace(answers=[(one, _of_this(one, answer, ended_before)) for one, answer in ends.answers])


def _of_this(worker: WorkerDir, answer: Answer, ended_before: Collection[WorkerId]) -> Answer:
    """Return the answer; a worker that the decision has ended so fast that the second look finds its end was asked."""
    is_quick = answer is Answer.ENDED and worker.id not in ended_before
    return Answer.UNDER_WAY if is_quick and status_at_end(worker) is Status.CANCELLED else answer


def _decide(
    tree: TreeDir,
    members: Sequence[WorkerDir],
    also_of: Collection[str],
    waiting: Collection[WorkerId],
    request: Request,
) -> Stopped:
    """Decide about workers of one tree. Where that cannot be done, or not soon, those that run are asked at once."""
    order = StopOrder(request.by, request.grace_s, [worker.id for worker in members])
    stop = partial(stop_all, tree, order, request.store(), also_of=also_of)
    running = [worker for worker in members if worker.id not in waiting]
    try:
        return stop(limit_s=_PATIENCE_S)
    except LockTimeout:
        leave_order(tree, order, also_of=also_of)  # Or the ends of those that run would start others meanwhile.
        _ask_at_once(running, request)
        return stop(limit_s=LOCK_LIMIT_S - _PATIENCE_S)
    except (AgentctlError, OSError):
        _ask_at_once(running, request)
        raise


def _ask_at_once(workers: Sequence[WorkerDir], request: Request) -> None:
    for worker in workers:
        with contextlib.suppress(AgentctlError, OSError):  # The caller is told of what stood in the way before.
            request_end(worker, request)


def _ask_each(
    tree: TreeDir,
    members: Sequence[WorkerDir],
    stopped: Stopped,
    waiting: Collection[WorkerId],
    request: Request,
    ends: RequestedEnds,
) -> None:
    """Note who has ended in the queue, and do for each of the others what its condition requires."""
    workers = {worker.id: worker for worker in members}
    workers |= {one: tree.worker_at(one) for one in stopped.workers if one not in workers}
    queued, problem = instances_by_task(read_queue(tree)), None
    for worker_id, worker in workers.items():
        if worker_id in stopped.withdrawn:
            ends.answers.append((worker, Answer.WITHDRAWN))
            continue
        try:
            answer = request_end(worker, request, queued.get(worker_id.task_id, ()))
        except (AgentctlError, OSError) as error:
            problem = problem or error
            continue
        ends.answers.append((worker, answer))
        if worker_id in waiting and (answer is Answer.UNDER_WAY or worker.process.exists()):
            ends.started.append(worker)
    if problem is not None:
        raise problem


def _waiting(tree: TreeDir) -> set[WorkerId]:
    """Return the workers that are in the queue of a tree and have no place yet."""
    placed = {occupant.worker_id for _, occupant in occupants_in(tree.slots)}
    return {ticket.worker_id for ticket in read_queue(tree)} - placed


def request_end(worker: WorkerDir, request: Request, queued: Collection[str] | None = None) -> Answer:
    """Do what the worker's condition requires to make it end.

    Args:
        queued: The workers of its task that have a ticket, if that was just read.
    """
    clear_no_decision(worker)  # A worker that wrote a false end itself would not be cancelled.
    for _ in range(100):  # It may move from the queue to a shim between the look and the act.
        condition, queued = judge_surely(worker, queued), None
        match condition:
            case Condition.ENDED | Condition.LOST:
                with contextlib.suppress(AgentctlError, OSError):  # A disk that refuses it: it has ended all the same.
                    settle(worker, condition)
                return Answer.ENDED
            case Condition.ELSEWHERE:
                return Answer.ELSEWHERE
            case Condition.QUEUED:
                answer = _OF_WITHDRAWAL[found := _withdraw(worker, request)]
                if found is _Withdrawal.STARTING:
                    put_cancel_request(worker, request.by, request.grace_s)  # The shim looks for it before it forks.
                if answer is not None:
                    return answer
            case Condition.SUPERVISED:
                if _is_told(worker, request):
                    return Answer.UNDER_WAY
            case Condition.UNSUPERVISED | Condition.UNFOLLOWED:
                _give_guardian(worker, request, is_on_node=condition is Condition.UNFOLLOWED)
                return Answer.UNDER_WAY
    raise AgentctlError(f"{worker.instance} could not be cancelled: its state changed 100 times", hint="try again")


def _give_guardian(worker: WorkerDir, request: Request, *, is_on_node: bool) -> None:
    """Write a request down, and start a process that carries it out."""
    if not worker.path.is_dir():
        make_folder(worker.path)  # It was removed, and the next guardian locks a file in it.
    put_cancel_request(worker, request.by, request.grace_s)
    # Of a worker on a node, only the shim there can prove that it is gone: another one here asks it.
    take_over(worker) if is_on_node else begin_burial(worker)


def _is_told(worker: WorkerDir, request: Request) -> bool:
    """Have the shim of a worker carry a request out; return False if it has gone meanwhile."""
    if not worker.path.is_dir():
        _wake_stopped(worker)  # Its shim ends it because its folder was removed, and there is no place for a request.
        return True
    problem = put_cancel_request(worker, request.by, request.grace_s)
    if not _wake(worker):
        return False
    if problem is not None:
        await_taken_up(worker, deferred.CANCEL, problem)
    return True


def _wake(worker: WorkerDir) -> bool:
    """Make the shim look at the request; return False if it has gone meanwhile."""
    _wake_stopped(worker)
    with contextlib.suppress(OSError):  # No free descriptor, for example: it looks about once a second anyway.
        if poke(worker):
            return True
    return judge(worker) is Condition.SUPERVISED


def await_taken_up(worker: WorkerDir, kind: str, problem: AgentctlError | OSError) -> None:
    """Wait until a worker's shim has seen a request that waits in memory.

    Raises:
        AgentctlError: It has not: this process may be in a sandbox whose memory is its own. The request is taken back.
        OSError: The same.
    """
    give_up_at = monotonic() + _TAKEN_UP_S
    while deferred.request(worker, kind) is not None and not deferred.standing(worker):
        if monotonic() >= give_up_at:
            if judge(worker) is Condition.SUPERVISED:
                deferred.forget_request(worker, kind)
                raise problem
            return
        time.sleep(_LOOK_S)


def _wake_stopped(worker: WorkerDir) -> None:
    """Continue a shim that somebody stopped: it could not act on a cancel.

    Only a process that was executed as a guardian in this tree of tasks: the files may name any process.
    """
    tree = tree_of(worker.task)
    for shim in (
        processes.identity_from(read_known(worker.shim)),
        shim_beside(tree.slots, worker.id),
    ):
        stat = processes.read_stat(shim.pid) if shim else None
        if shim is not None and stat is not None and stat.state in "Tt" and is_guardian(shim, tree):
            processes.signal_process(shim, signal.SIGCONT)


class _Withdrawal(Enum):
    """The outcome of taking a worker out of the queue."""

    #: It is out and has ended.
    DONE = "done"
    #: A shim has been given its ticket and is about to take it.
    STARTING = "starting"
    #: The queue cannot be changed; whatever is given its ticket finds that it is to end.
    BARRED = "barred"
    #: It had left the queue before.
    TOO_LATE = "too late"


#: The answer to each; None looks again.
_OF_WITHDRAWAL = {
    _Withdrawal.DONE: Answer.WITHDRAWN,
    _Withdrawal.BARRED: Answer.BARRED,
    _Withdrawal.STARTING: Answer.UNDER_WAY,
    _Withdrawal.TOO_LATE: None,
}


def _withdraw(worker: WorkerDir, request: Request) -> _Withdrawal:
    """Take a worker out of the queue and end it, unless its start is under way."""
    try:
        return _withdraw_locked(worker, request)
    except LockTimeout:
        raise
    except (AgentctlError, OSError):
        put_cancel_request(worker, request.by, request.grace_s)
        return _Withdrawal.BARRED


def _withdraw_locked(worker: WorkerDir, request: Request) -> _Withdrawal:
    tree = tree_of(worker.task)
    with locked(tree.queue_lock, is_written=False):
        mine = tickets_of(tree, worker)
        if not mine:
            return _Withdrawal.TOO_LATE
        if worker.id in workers_being_started(tree):
            return _Withdrawal.STARTING
        if not withdraw(tree, {worker.id: mine}, request.by, request.store()):
            publish(worker)  # Another process has decided its end.
    with contextlib.suppress(AgentctlError):
        update(worker.task, {worker.instance: RosterRow(read_spec(worker.spec).agent, Status.CANCELLED)})
    return _Withdrawal.DONE
