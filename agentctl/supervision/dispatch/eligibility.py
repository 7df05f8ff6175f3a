"""Which workers in the queue may start; those that never can are ended here, with the reason."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator

from agentctl.adapters.locks import is_alive_held
from agentctl.adapters.taskdir import TreeDir, WorkerDir
from agentctl.domain.names import WorkerId
from agentctl.domain.states import Reason, Status
from agentctl.errors import Damaged
from agentctl.supervision.queue.queue_hold import QueueHolds
from agentctl.supervision.queue.tickets import Ticket, dependencies_of, remove_ticket, some_wait
from agentctl.supervision.worker.endings import Decision, decide, is_over, publish, status_at_end
from agentctl.supervision.worker.environment import NO_ENVIRONMENT


def ready_tickets(
    tree: TreeDir,
    queue: list[Ticket],
    starting: Collection[WorkerId],
    given: Collection[WorkerId],
    removed: list[Ticket],
    holds: QueueHolds,
) -> Iterator[Ticket]:
    """Yield the tickets that may start, in order, looking no further than the caller asks (under the queue's lock).

    Args:
        starting: The workers that a place already names.
        given: The workers whose environment the caller has.
        removed: Receives the tickets that are removed here, of workers that have started or never can.
        holds: The queues that are held; a worker that never can start is ended there too.
    """
    waiting = []
    if some_wait(queue):  # A running worker may have put a ticket of its own there; it is left out.
        named = [ticket for ticket in queue if ticket.waits and ticket.worker_id not in starting]
        waiting = [ticket for ticket in named if not is_begun(tree.worker_at(ticket.worker_id))]
    held_back = _end_hopeless(tree, waiting, removed)
    for ticket in queue:
        worker_id = ticket.worker_id
        if ticket in held_back or worker_id in starting:
            continue
        worker = tree.worker_at(ticket.worker_id)
        if holds.of(worker) is not None:
            continue
        if is_begun(worker):
            remove_ticket(tree, ticket)
            removed.append(ticket)
            continue
        why = _never(worker, ticket, worker_id in given)
        if why is not None:
            _refuse(tree, ticket, worker, Reason.NOT_STARTED, why)
            removed.append(ticket)
        else:
            yield ticket


def is_begun(worker: WorkerDir) -> bool:
    """Return whether a worker with a ticket has been started: the ticket is a leftover of a killed shim."""
    return worker.process.exists() and is_over(worker)


def _never(worker: WorkerDir, ticket: Ticket, is_given: bool) -> str | None:
    """Return why a worker whose dependencies are met can never start; None if it can."""
    if not worker.path.exists():
        return "its folder was removed"
    if ticket.environment == NO_ENVIRONMENT and not is_given:
        return "the command that was starting it was killed"
    return None


def _end_hopeless(tree: TreeDir, waiting: list[Ticket], removed: list[Ticket]) -> set[Ticket]:
    """End the workers whose dependencies did not complete, and those behind them; return the tickets that must wait."""
    held_back: set[Ticket] = set()
    hopeless: set[Ticket] = set()
    again = bool(waiting)
    while again:
        again = False
        for ticket in [ticket for ticket in waiting if ticket not in hopeless]:
            failed, is_met = _look_at_dependencies(tree, ticket)
            if failed:
                worker = tree.worker_at(ticket.worker_id)
                _refuse(tree, ticket, worker, Reason.DEPENDENCY, f"a dependency was not met: {failed}")
                removed.append(ticket)
                hopeless.add(ticket)
                again = True
            if failed or not is_met:
                held_back.add(ticket)
            else:
                held_back.discard(ticket)
    return held_back


def waits_for_others(tree: TreeDir, ticket: Ticket) -> bool:
    """Return whether a worker waits for others that may still do what it waits for."""
    failed, is_met = _look_at_dependencies(tree, ticket) if ticket.waits else (None, True)
    return failed is None and not is_met


def _look_at_dependencies(tree: TreeDir, ticket: Ticket) -> tuple[str | None, bool]:
    """Return why the dependencies can no longer be met (None if they can), and whether all of them are met."""
    try:
        names, any_end = dependencies_of(tree, ticket)
    except Damaged as error:
        return error.message, False
    is_met = True
    for name in names:
        worker = tree.sibling(ticket.task_id).worker(name)
        if not worker.has_ended and not worker.path.exists():
            if not any_end:
                return f"{name} is gone: its folder was removed", False
        # While its shim lives, its end may not be in the log yet; a start that waits for it must come after that.
        elif not worker.has_ended or is_alive_held(worker.shim):
            is_met = False
        elif not any_end and (status := status_at_end(worker)) is not Status.COMPLETED:
            return f"{name} {status}", False
    return None, is_met


def _refuse(tree: TreeDir, ticket: Ticket, worker: WorkerDir, reason: Reason, why: str) -> None:
    decision = decide(worker, Decision(status=Status.FAILED, reason=reason, message=why))
    remove_ticket(tree, ticket)
    with contextlib.suppress(FileNotFoundError):  # Its whole task was removed: there is no log.
        publish(worker, decision)
