"""A decision to stop several workers of a tree is one: it is on disk before any of them is touched.

`stop.json` of the root task names the workers. It is written, carried out and removed under the queue's lock, so a
process that has this lock and finds the file knows that whoever decided was killed, or refused by the disk. It carries
out the rest before it starts anything: between the decision and its end, no worker leaves the queue to run.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable, Mapping, Sequence

from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import create_whole, make_durable, read_json, read_known, set_aside, to_json, write_whole
from agentctl.adapters.locks import LOCK_LIMIT_S, locked
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import TreeDir, WorkerDir
from agentctl.adapters.taskyaml.roster import mark_stale
from agentctl.domain.names import WorkerId, is_name
from agentctl.domain.states import Status
from agentctl.domain.text.numbers import finite
from agentctl.errors import AgentctlError, AtTerminal, Damaged, StorageError
from agentctl.lean import Any, NamedTuple
from agentctl.supervision import failpoints
from agentctl.supervision.dispatch.slots import workers_being_started
from agentctl.supervision.life.belonging import record_of
from agentctl.supervision.life.judging import Condition, judge
from agentctl.supervision.queue.places import occupants_in
from agentctl.supervision.queue.tickets import Ticket, instances_by_task, read_queue, take_out
from agentctl.supervision.worker.cancel_request import put_cancel_request
from agentctl.supervision.worker.control import poke
from agentctl.supervision.worker.endings import (
    Decision,
    decide,
    decision_of,
    keep_end,
    log_size,
    publish_all,
    started_among,
)

#: What a worker in the queue is told to have been doing when it was stopped.
IN_THE_QUEUE = "it was waiting in the queue"
_ASKED = frozenset({Condition.SUPERVISED, Condition.UNSUPERVISED, Condition.UNFOLLOWED, Condition.QUEUED})


class StopOrder(NamedTuple):
    """Which workers of a tree are to be stopped, and who decided that."""

    by: str
    #: Another grace period than the workers' own.
    grace_s: float | None
    workers: Sequence[WorkerId]


class Stopped(NamedTuple):
    """What became of the workers of an order."""

    #: All that the decision is about.
    workers: Sequence[WorkerId]
    #: Those that were in the queue, and have ended there.
    withdrawn: Collection[WorkerId]


def stop_all(
    tree: TreeDir,
    order: StopOrder,
    folder: FilePath,
    *,
    also_of: Collection[str] = (),
    limit_s: float = LOCK_LIMIT_S,
) -> Stopped:
    """Decide that workers of a tree are to end, end those in the queue, and request the ends of all others.

    Args:
        also_of: Tasks of which every worker is meant that is in the queue or has a place, named or not.
        folder: Where environments wait.

    Raises:
        LockTimeout: The queue's lock was not free within `limit_s`; nothing was done.
        StorageError: The disk refused, and so did memory. The workers that run have been asked as far as that could
            be done; if the order was written, whoever next looks at the queue goes on with it.
    """
    with locked(tree.queue_lock, limit_s=limit_s, is_written=False):
        left_over = _left_over(tree)
        if left_over is not None:
            _carry_out(tree, left_over, folder)
        order = order._replace(workers=_with_all_of(tree, order.workers, also_of))
        if len(order.workers) > 1:
            # Where the disk refuses the order, the queue's lock alone keeps it, for as long as this process lives.
            with contextlib.suppress(AgentctlError, OSError):
                _write(tree, order)
        return _carry_out(tree, order, folder)


def leave_order(tree: TreeDir, order: StopOrder, *, also_of: Collection[str] = ()) -> None:
    """Leave an order for whoever has the queue's lock next: from then on, nothing that it is about is started.

    One that was left before stays: the queue is at rest until that one has been carried out.
    """
    with contextlib.suppress(AgentctlError, OSError):  # A disk that refuses it: the caller waits on for the lock.
        body = _body_of(order._replace(workers=_with_all_of(tree, order.workers, also_of)))
        create_whole(tree.stop_order, to_json(body))


def carry_out_the_rest(tree: TreeDir, folder: FilePath) -> None:
    """Carry out what an order that was left behind still says (the caller holds the queue's lock).

    Raises:
        AgentctlError: That cannot be done now, so nothing may be started either.
    """
    if tree.stop_order.exists():
        _carry_out(tree, read_stop_order(tree), folder)


def read_stop_order(tree: TreeDir) -> StopOrder:
    """Return the order that is on disk.

    Raises:
        Damaged: It cannot be read, so whom it is about is not known.
    """
    value = read_json(tree.stop_order) or {}
    rows, grace_s = value.get("workers"), finite(value.get("graceSeconds"))
    if not isinstance(rows, list) or not all(isinstance(row, str) for row in rows):
        raise Damaged(f"{tree.stop_order} does not say which workers are to be stopped", hint=_HINT)
    parts = [row.split("/") for row in rows]
    if not all(len(found) == 2 and all(map(is_name, found)) for found in parts):
        raise Damaged(f"{tree.stop_order} names something else than workers", hint=_HINT)
    by = value.get("by")
    return StopOrder(by if isinstance(by, str) else "agentctl", grace_s, [WorkerId(*found) for found in parts])


_HINT = AtTerminal("nothing is started until it is gone: look with agentctl list, then agentctl doctor --fix")


def _left_over(tree: TreeDir) -> StopOrder | None:
    """Return an order that was left behind; one that cannot be read is set aside, since a person decides anew."""
    if not tree.stop_order.exists():
        return None
    try:
        return read_stop_order(tree)
    except Damaged:
        set_aside(tree.stop_order)
        return None


def _with_all_of(tree: TreeDir, named: Iterable[WorkerId], tasks: Collection[str]) -> list[WorkerId]:
    """Return the workers that are named and have not ended, and all of some tasks that may be at work."""
    found = dict.fromkeys(named)
    if tasks:
        found |= dict.fromkeys(ticket.worker_id for ticket in read_queue(tree) if ticket.task_id in tasks)
        places = (occupant.worker_id for _, occupant in occupants_in(tree.slots))
        found |= dict.fromkeys(worker_id for worker_id in places if worker_id.task_id in tasks)
    return [worker_id for worker_id in found if decision_of(tree.worker_at(worker_id)) is None]


def _body_of(order: StopOrder) -> dict[str, Any]:
    grace = {} if order.grace_s is None else {"graceSeconds": order.grace_s}
    workers = ["/".join(worker_id) for worker_id in order.workers]
    return {"by": order.by, "at": now_iso(), **grace, "workers": workers}


def _write(tree: TreeDir, order: StopOrder) -> None:
    write_whole(tree.stop_order, to_json(_body_of(order)))
    failpoints.reached("stop.after-order")


def _carry_out(tree: TreeDir, order: StopOrder, folder: FilePath) -> Stopped:
    queue = read_queue(tree)
    waiting = _waiting(tree, order, queue)
    try:
        withdrawn = withdraw(tree, waiting, order.by, folder)
    finally:  # Also where the disk refuses an end: what runs costs more than what waits.
        _request(tree, order, waiting, queue)
    for task_id in _by_task(waiting):
        mark_stale(tree.sibling(task_id))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(tree.stop_order)
    return Stopped(order.workers, withdrawn)


def _request(tree: TreeDir, order: StopOrder, waiting: Collection[WorkerId], queue: Sequence[Ticket]) -> None:
    """Request the ends of the workers of an order that do not wait in the queue.

    Raises:
        StorageError: The disk refused some of the requests; all were tried.
    """
    problem: StorageError | None = None
    queued = instances_by_task(queue)
    for worker_id in order.workers:
        worker = tree.worker_at(worker_id)
        if worker_id in waiting or judge(worker, queued.get(worker_id.task_id, ())) not in _ASKED:
            continue
        try:
            put_cancel_request(worker, order.by, order.grace_s)
            poke(worker)
        except StorageError as error:
            problem = problem or error
        except (AgentctlError, OSError):
            continue  # Something odd in one worker's folder must not save the others.
    if problem is not None:
        raise problem


def _waiting(tree: TreeDir, order: StopOrder, queue: Sequence[Ticket]) -> dict[WorkerId, list[Ticket]]:
    """Return the workers of an order that are in the queue and not about to be started, with their tickets."""
    wanted, found = set(order.workers), dict[WorkerId, list[Ticket]]()
    for ticket in queue:
        if ticket.worker_id in wanted:
            found.setdefault(ticket.worker_id, []).append(ticket)  # A killed writer may have left it two.
    for worker_id in workers_being_started(tree) if found else ():
        found.pop(worker_id, None)
    # The ticket of a worker that was started is a leftover, which the next look at the queue removes.
    had_process = _by_task(worker_id for worker_id in found if tree.worker_at(worker_id).process.exists())
    for task_id, instances in had_process.items():
        for instance in started_among(tree.sibling(task_id), instances):
            del found[WorkerId(task_id, instance)]
    return found


def withdraw(tree: TreeDir, waiting: Mapping[WorkerId, Sequence[Ticket]], by: str, folder: FilePath) -> set[WorkerId]:
    """End workers that are in the queue, and take them out of it (the caller holds the queue's lock).

    Returns:
        Those that were ended by this.

    Raises:
        StorageError: The disk refused an end, and so did memory; some may have ended, and those that have not are
            still in the queue.
    """
    ended, is_refused = set[WorkerId](), False
    for task_id, instances in _by_task(waiting).items():
        task, made = tree.sibling(task_id), dict[str, Decision]()
        since = log_size(task)
        for name in instances:
            worker, decision = task.worker(name), _cancelled(task.worker(name), by)
            try:
                decided = decide(worker, decision, durable=False)
            except StorageError as problem:
                keep_end(worker, decision, problem)  # It bars the start, and a guardian writes it down later.
                is_refused = True
                ended.add(worker.id)
            except (AgentctlError, OSError):
                continue  # Something odd lies there; without a ticket it is not started either.
            else:
                made |= {name: decided} if decided is not None else {}
        ended |= {WorkerId(task_id, name) for name in made}
        # Only now are they on disk; until then their tickets stand.
        make_durable([task.worker(name).exit for name in made], task.agents) if made else None
        with contextlib.suppress(StorageError):  # The ends are on disk; the next look at each publishes it.
            publish_all(task, made, since=since)
    with contextlib.suppress(AgentctlError, OSError) if is_refused else contextlib.nullcontext():
        take_out(tree, [ticket for tickets in waiting.values() for ticket in tickets], folder)
    return ended


def _cancelled(worker: WorkerDir, by: str) -> Decision:
    """Return the end of a worker that is cancelled in the queue."""
    decision = Decision(status=Status.CANCELLED, by=by, message=IN_THE_QUEUE)
    try:
        if not worker.process.exists():
            return decision
        ran, worked = record_of(worker), read_known(worker.worked)
    except StorageError:
        return decision  # It is cancelled all the same.
    return decision._replace(started_at=ran.started_at, attempt=ran.attempt, worked=worked or None)


def _by_task(worker_ids: Iterable[WorkerId]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for worker_id in worker_ids:
        found.setdefault(worker_id.task_id, []).append(worker_id.instance)
    return found
