"""Pauses and continues a worker's whole tree; its clock stands still meanwhile, and nothing is started below it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from agentctl.adapters.clock import monotonic
from agentctl.adapters.taskdir import TaskDir, TreeDir, WorkerDir
from agentctl.adapters.treedir import trees_of
from agentctl.errors import AgentctlError, Refused
from agentctl.lean import NamedTuple
from agentctl.operations.stop.holding import run_queue
from agentctl.operations.wait.live_view import LiveTask
from agentctl.operations.where.lineage import who
from agentctl.operations.where.locating import find_worker
from agentctl.operations.where.ownership import check_own
from agentctl.supervision.life.judging import Condition, judge
from agentctl.supervision.queue.queue_hold import end_hold, hold_queue
from agentctl.supervision.stop.requesting import await_taken_up
from agentctl.supervision.worker import deferred, pause_request
from agentctl.supervision.worker.control import poke
from agentctl.supervision.worker.kinship import descendants, task_name
from agentctl.supervision.worker.placed import has_begun
from agentctl.supervision.worker.spec import is_for_node

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.ends import PausedWorker

_ANSWER_LIMIT_S = 15.0


class Turned(NamedTuple):
    """What became of workers that were to be paused, or to go on, as far as possible."""

    done: list[PausedWorker]
    #: worker -> why it was left out.
    left_out: Mapping[str, AgentctlError | OSError]


def pause_worker(task: TaskDir, instance: str) -> PausedWorker:
    """Pause a running worker's process tree, and those of the workers below it; return once they are stopped."""
    return _turn_all(task, [instance], paused=True)[0]


def unpause_worker(task: TaskDir, instance: str) -> PausedWorker:
    """Continue a paused worker's process tree, and those of the workers below it."""
    return _turn_all(task, [instance], paused=False)[0]


def pause_workers(task: TaskDir, instances: Sequence[str]) -> list[PausedWorker]:
    """Pause several workers, or none if one of them cannot be paused."""
    return _turn_all(task, instances, paused=True)


def unpause_workers(task: TaskDir, instances: Sequence[str]) -> list[PausedWorker]:
    """Continue several workers, or none if one of them cannot be continued."""
    return _turn_all(task, instances, paused=False)


def turn_as_far_as_possible(task: TaskDir, instances: Sequence[str], *, paused: bool) -> Turned:
    """Pause or continue those of several workers for which that is possible.

    Raises:
        Refused: The task is somebody else's.
    """
    check_own(task)
    done: list[PausedWorker] = []
    left_out: dict[str, AgentctlError | OSError] = {}
    for instance in dict.fromkeys(instances):
        try:
            worker = find_worker(task, instance)
            _check(worker, paused=paused)
            done.append(_turn(worker, paused=paused))
        except (AgentctlError, OSError) as error:
            left_out[instance] = error
    return Turned(done, left_out)


def _turn_all(task: TaskDir, instances: Sequence[str], *, paused: bool) -> list[PausedWorker]:
    check_own(task)
    workers = [find_worker(task, one) for one in dict.fromkeys(instances)]
    for worker in workers:
        _check(worker, paused=paused)
    return [_turn(worker, paused=paused) for worker in workers]


def _check(worker: WorkerDir, *, paused: bool) -> None:
    instance, condition = worker.instance, judge(worker)
    if condition is not Condition.SUPERVISED:
        raise Refused(f"{instance} cannot be {'paused' if paused else 'continued'}: it is {_described(condition)}")
    if paused and not _is_there(worker):
        raise Refused(
            f"{instance} cannot be paused: it waits for a node, and nothing of it runs yet",
            hint="pause it once it runs, or cancel it",
        )


def _turn(worker: WorkerDir, *, paused: bool) -> PausedWorker:
    if paused:
        _hold_and_ask(worker)
    below = [one for one in descendants(worker) if judge(one) is Condition.SUPERVISED and _is_there(one)]
    agents = [worker, *below]
    for one in below if paused else reversed(agents):
        _ask(one, paused)
    deadline = monotonic() + _ANSWER_LIMIT_S
    for place in {str(one.task.path): one.task for one in agents}.values():
        _await(place, [one.instance for one in agents if one.task.path == place.path], paused, deadline)
    if not paused:
        _let_go_below(agents)
    names = ["/".join(filter(None, (task_name(one.task, worker.task), one.instance))) for one in below]
    return {"agentInstance": worker.instance, "paused": paused, "withIt": names}


def _hold_and_ask(worker: WorkerDir) -> None:
    """Have nothing started below a worker from now on, and ask for its pause; nothing is held if that fails."""
    with contextlib.ExitStack() as taken_back:
        _hold_below(worker, taken_back)
        _ask(worker, paused=True)
        taken_back.pop_all()


def _hold_below(worker: WorkerDir, taken_back: contextlib.ExitStack) -> None:
    """Have nothing started below a worker from now on, in its own tree and in those that it has made.

    A start that was under way has come to its end once the queue's lock was had: what it started is found afterwards.

    Args:
        taken_back: Gets what ends each hold that is new.
    """
    done: set[str] = set()
    while new := [tree for tree in _trees_of(worker) if tree.path not in done]:
        for tree in new:
            if hold_queue(tree, worker, who()):
                taken_back.callback(_take_back, tree, worker)
            done.add(tree.path)


def _take_back(tree: TreeDir, worker: WorkerDir) -> None:
    with contextlib.suppress(AgentctlError, OSError):  # What the pause has failed with is told.
        _let_go(tree, [worker])


def _let_go_below(workers: Sequence[WorkerDir]) -> None:
    """Let what is below workers start again; one that was paused by itself before goes on too, as its processes do."""
    for tree in _trees_of(workers[0]):
        _let_go(tree, workers)


def _let_go(tree: TreeDir, workers: Sequence[WorkerDir]) -> None:
    ended = [end_hold(tree, one) for one in workers]
    if any(ended):
        run_queue(tree)


def _trees_of(worker: WorkerDir) -> list[TreeDir]:
    return trees_of(one.task for one in (worker, *descendants(worker)))


def _is_there(worker: WorkerDir) -> bool:
    """Return whether there is something to pause: a worker that is for a node may still wait for one."""
    return not is_for_node(worker) or has_begun(worker)


def _described(condition: Condition) -> str:
    return {
        Condition.ENDED: "over",
        Condition.LOST: "lost",
        Condition.QUEUED: "still in the queue",
        Condition.UNSUPERVISED: "unsupervised (its shim is gone); it can only be cancelled",
        Condition.UNFOLLOWED: "on a node, and nobody here follows it yet: try again",
        Condition.ELSEWHERE: "on another machine or in another pid namespace",
    }[condition]


def _ask(worker: WorkerDir, paused: bool) -> None:
    problem = pause_request.put_pause_request(worker, who(), paused=paused)
    with contextlib.suppress(OSError):  # No free descriptor, for example: its shim looks about once a second anyway.
        poke(worker)
    if problem is not None:
        await_taken_up(worker, deferred.PAUSE, problem)


def _await(task: TaskDir, names: list[str], paused: bool, deadline: float) -> None:
    with LiveTask(task) as live_task:
        if deferred.are_any():
            live_task.watch.add(deferred.place())
        for view in live_task.follow(deadline):
            workers = [view.workers[name] for name in names if name in view.workers]  # Its log may be lost.
            # What the disk refuses to log, the view has from the shim itself.
            if all(worker.is_paused == paused or worker.is_terminal for worker in workers):
                return
    raise Refused(f"the shim of {names[0]} has not answered in {_ANSWER_LIMIT_S:g} s: is it stopped?")
