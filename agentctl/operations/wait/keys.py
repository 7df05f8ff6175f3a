"""Waiting for several workers of a tree of tasks at once, until enough of them have ended or ask."""

from __future__ import annotations

import _thread
from collections.abc import Callable, Collection, Mapping

from agentctl.adapters.taskdir import TaskDir
from agentctl.domain.names import WorkerId
from agentctl.domain.states import TERMINAL, Status
from agentctl.domain.worker.projection import WorkerView
from agentctl.lean import NamedTuple
from agentctl.operations.show.unreadable import check_any_known
from agentctl.operations.wait.live_view import LiveTree
from agentctl.operations.wait.rounds import WaitRounds
from agentctl.supervision.life.judging import Condition

#: Held while a wait folds logs and judges workers, which is bound by the processor: when many waits begin or wake at
#: once, one does so at a time, and the other threads of this process (that answer a client) get their share.
TURN = _thread.allocate_lock()


class Seen(NamedTuple):
    """The state of a worker as a wait has seen it."""

    status: Status
    reason: str | None
    #: The seq of the event that set this status; 0 for a worker at work.
    seq: int
    #: It is in the queue, and nobody will start it.
    is_stranded: bool = False
    #: It is in the queue until a person lets the queue go.
    is_held: bool = False

    @property
    def is_terminal(self) -> bool:
        """Return whether the worker has ended."""
        return self.status in TERMINAL

    @property
    def is_final(self) -> bool:
        """Return whether nothing more can come of it, unless a person sees to it."""
        return self.is_terminal or self.is_stranded

    @property
    def is_news(self) -> bool:
        """Return whether the worker has ended or needs an answer."""
        return self.is_terminal or self.status is Status.BLOCKED


Sight = Mapping[WorkerId, Seen]


def gather(
    task: TaskDir,
    keys: Collection[WorkerId],
    *,
    is_enough: Callable[[Sight], bool],
    timeout_s: float | None,
    broken: int | None = None,
) -> Sight:
    """Wait for workers of a task and its sub-tasks until `is_enough` accepts their states, or the time is over.

    Args:
        timeout_s: None waits without a limit.
        broken: A descriptor that becomes readable when nobody wants the answer any more.

    Returns:
        The states seen last, without the workers that do not exist. Nobody was stopped.

    Raises:
        StorageError: Nothing of those that have not ended can be read.
        BrokenOff: `broken` became readable.
        WaitStopped: The worker that waits was cancelled or paused.
    """
    # Only the tasks in the keys: a thousand sub-tasks are not read for the sake of one.
    below = [task.sibling(name) for name in dict.fromkeys(key.task_id for key in keys) if name != task.id]
    with (
        LiveTree(task, others=[one for one in below if one.exists]) as live_tree,
        WaitRounds(live_tree, timeout_s, broken=broken, turn=TURN) as rounds,
    ):
        while True:
            with TURN:
                seen, alive = _look(live_tree, keys)
            if not is_enough(seen):
                check_any_known(alive)
                if rounds.next():
                    continue
            rounds.give_back()
            return seen


def _look(live_tree: LiveTree, keys: Collection[WorkerId]) -> tuple[Sight, list[WorkerView]]:
    """Return what is seen of workers, and those that have not ended."""
    found: dict[WorkerId, Seen] = {}
    alive: list[WorkerView] = []
    stranded = frozenset(live_tree.stranded())
    live_tasks = {live_task.task.id: live_task for live_task, _ in live_tree.update()}
    for key in keys:
        live_task = live_tasks.get(key.task_id)
        worker = live_task.view.workers.get(key.instance) if live_task is not None else None
        if worker is not None and live_task is not None:
            found[key] = Seen(Status.RUNNING, None, 0) if _is_replaced(live_task.task, worker) else _seen(worker)
            if worker.status is Status.QUEUED:
                is_held = live_task.conditions.get(key.instance) is Condition.HELD
                found[key] = found[key]._replace(is_stranded=key in stranded, is_held=is_held)
            alive += [worker] * (not worker.is_terminal)
    return found, alive


def _is_replaced(task: TaskDir, worker: WorkerView) -> bool:
    """Return whether the folder of an ended worker was removed, and a new worker at work has its name."""
    worker_dir = task.worker(worker.instance)
    return worker.end_seq is not None and not worker_dir.has_ended and worker_dir.spec.exists()


def _seen(worker: WorkerView) -> Seen:
    if worker.is_terminal:
        return Seen(worker.status, worker.reason, worker.end_seq or 0)
    return Seen(worker.status, None, (worker.block_seq or 0) if worker.status is Status.BLOCKED else 0)
