"""Waiting for several workers of a tree of tasks at once, until enough of them have ended or ask."""

from __future__ import annotations

import _thread
from collections.abc import Callable, Collection, Mapping

from agentctl.adapters.taskdir import TaskDir
from agentctl.domain.names import WorkerId
from agentctl.domain.projection import WorkerView
from agentctl.domain.states import TERMINAL, Status
from agentctl.lean import NamedTuple
from agentctl.operations.wait.live_view import LiveTree
from agentctl.operations.wait.rounds import WaitRounds

#: Whose turn it is to fold logs and to judge workers, which takes the processor: of many waits that begin, or are
#: woken, at once, one does so at a time, and whoever else runs in this process (who answers a client) gets its share.
TURN = _thread.allocate_lock()


class Seen(NamedTuple):
    """What a wait has seen of a worker."""

    status: Status
    reason: str | None
    #: The event that made it so; of a worker at work 0.
    seq: int

    @property
    def is_terminal(self) -> bool:
        """Tell whether it is over."""
        return self.status in TERMINAL

    @property
    def is_news(self) -> bool:
        """Tell whether it ended, or needs an answer."""
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
    """Wait until what is seen of some workers of a task and its sub-tasks is enough, or the time is over.

    Args:
        timeout_s: None waits without a limit.
        broken: A descriptor that is readable once nobody wants the answer any more.

    Returns:
        What was seen last; a worker that is not there is not in it. Nobody was stopped.

    Raises:
        BrokenOff: `broken` became readable.
        WaitStopped: The worker that waits was cancelled or paused.
    """
    # Only those: a task that has had a thousand sub-tasks is not looked at whole for one.
    below = [task.sibling(name) for name in dict.fromkeys(key.task_id for key in keys) if name != task.id]
    with (
        LiveTree(task, others=[one for one in below if one.exists]) as live_tree,
        WaitRounds(live_tree, timeout_s, broken=broken, turn=TURN) as rounds,
    ):
        while True:
            with TURN:
                seen = _look(live_tree, keys)
            if is_enough(seen) or not rounds.next():
                rounds.give_back()
                return seen


def _look(live_tree: LiveTree, keys: Collection[WorkerId]) -> Sight:
    found: dict[WorkerId, Seen] = {}
    views = {live_task.task.id: (live_task.task, view) for live_task, view in live_tree.update()}
    for key in keys:
        task, view = views.get(key.task_id, (None, None))
        worker = view.workers.get(key.instance) if view is not None else None
        if worker is not None and task is not None:
            found[key] = Seen(Status.RUNNING, None, 0) if _is_begun_anew(task, worker) else _seen(worker)
    return found


def _is_begun_anew(task: TaskDir, worker: WorkerView) -> bool:
    """Tell whether somebody has removed the folder of an ended worker, and another one that works has its name."""
    worker_dir = task.worker(worker.instance)
    return worker.end_seq is not None and not worker_dir.has_ended and worker_dir.spec.exists()


def _seen(worker: WorkerView) -> Seen:
    if worker.is_terminal:
        return Seen(worker.status, worker.reason, worker.end_seq or 0)
    return Seen(worker.status, None, (worker.block_seq or 0) if worker.status is Status.BLOCKED else 0)
