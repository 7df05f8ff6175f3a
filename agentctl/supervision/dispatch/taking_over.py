"""Gives a worker on a node another shim here when its own was killed, or when this machine was restarted.

The worker has gone on meanwhile. It keeps its slot, whose file still names it; the shim finds its launch by the
worker's files.
"""

from __future__ import annotations

import os
import time

from agentctl.adapters.clock import monotonic
from agentctl.adapters.locks import locked, try_lock
from agentctl.adapters.opening import read_bytes
from agentctl.adapters.taskdir import TreeDir, WorkerDir
from agentctl.adapters.treedir import tree_of
from agentctl.errors import StorageError
from agentctl.supervision.dispatch.dispatch import Dispatched, complete_dispatch
from agentctl.supervision.dispatch.launching import launch
from agentctl.supervision.dispatch.slots import held_places
from agentctl.supervision.life.belonging import claim_of, record_of
from agentctl.supervision.life.judging import Condition, judge
from agentctl.supervision.life.process_tree import UnsupervisedTree
from agentctl.supervision.queue.places import Place, is_slot
from agentctl.supervision.queue.tickets import make_ticket
from agentctl.supervision.worker import environment
from agentctl.supervision.worker.environment import NO_ENVIRONMENT
from agentctl.supervision.worker.spec import digest_of, is_of_task

_KILL_LIMIT_S, _LOOK_S = 5.0, 0.01


def take_over(worker: WorkerDir) -> bool:
    """Start a shim for a worker on a node that nobody here follows; return whether that was done.

    The caller's environment vouches for the worker's spec as it is now, as for a queue that has lost its environments.
    """
    tree = tree_of(worker.task)
    if not is_of_task(worker):
        return False
    data = environment.pack(environment.for_worker(os.environb, {}))
    blob = environment.with_orders(data, [digest_of(read_bytes(worker.spec))])
    done = Dispatched()
    with locked(tree.queue_lock):
        if judge(worker) is not Condition.UNFOLLOWED or not _is_stand_in_gone(worker):
            return False
        place = _place_of(tree, worker)
        if place is None:
            return False
        ticket = make_ticket(worker.task.id, worker.instance, 0, 1, NO_ENVIRONMENT, waits=False)
        try:
            done.launches.append(launch(tree, ticket, place))
        except (StorageError, OSError):
            place.let_go()
            return False
    complete_dispatch(tree, done, {worker.id: blob})
    return True


def _is_stand_in_gone(worker: WorkerDir) -> bool:
    """End what still stands in for the worker here: two of them would tell everything twice."""
    left, until = UnsupervisedTree(claim_of(worker, record_of(worker))), monotonic() + _KILL_LIMIT_S
    while not left.is_gone():
        if monotonic() >= until:
            return False
        left.kill()
        time.sleep(_LOOK_S)
    return True


def _place_of(tree: TreeDir, worker: WorkerDir) -> Place | None:
    """Return the place that names the worker, or a new one: it is at work already, whatever the limit is now."""
    for name, occupant in held_places(tree):
        if occupant.worker_id == worker.id:
            fd = try_lock(tree.slots / name)
            return None if fd is None else Place(fd)
    used = [int(name) for name in os.listdir(tree.slots) if is_slot(name)]
    fd = try_lock(tree.slots / str(max(used, default=0) + 1))
    return None if fd is None else Place(fd)
