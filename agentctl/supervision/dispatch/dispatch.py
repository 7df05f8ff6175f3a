"""Who starts next: the one function that turns free slots and tickets into running workers.

It runs at every spawn, end, cancel, answer, wait and raised cap; `list` and `show` never call it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import islice

from agentctl.adapters import processes
from agentctl.adapters.locks import locked
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import TaskDir, TreeDir, WorkerDir
from agentctl.adapters.taskyaml.cache import cached, known_limits
from agentctl.adapters.taskyaml.roster import mark_stale
from agentctl.adapters.treedir import tree_of
from agentctl.domain.names import WorkerId
from agentctl.errors import Argument, Next, NoFreeSlot, StorageError, WithArguments
from agentctl.lean import TYPE_CHECKING
from agentctl.supervision.account.waiters import HeldInTree
from agentctl.supervision.dispatch.ahead_places import ahead_place
from agentctl.supervision.dispatch.eligibility import ready_tickets
from agentctl.supervision.dispatch.idle_places import count_idle, idle_place
from agentctl.supervision.dispatch.launching import (
    Launch,
    await_answer,
    hand_over,
    launch,
    replace_spares,
)
from agentctl.supervision.dispatch.slots import (
    Survey,
    describe_taken,
    guest_place,
    guests_of,
    move_guests,
    starting_of,
    survey,
)
from agentctl.supervision.dispatch.stop_order import carry_out_the_rest
from agentctl.supervision.queue.places import Occupant, Place
from agentctl.supervision.queue.queue_hold import QueueHold, QueueHolds, write_deferred
from agentctl.supervision.queue.tickets import Ticket, forget_environment, read_queue
from agentctl.supervision.worker import deferred, environment
from agentctl.supervision.worker.kinship import ancestors
from agentctl.supervision.worker.spec import held_cap

if TYPE_CHECKING:
    from agentctl.errors import Step

Blobs = Mapping[WorkerId, bytes]


class Dispatched:
    """The result of a dispatch: shims that have their places, but not their orders yet."""

    def __init__(self) -> None:
        self.launches: list[Launch] = []
        #: The ticket and the place that the calling shim takes for itself.
        self.mine: tuple[Ticket, Place] | None = None
        #: Tickets of workers that were ended because they can never start.
        self.removed: list[Ticket] = []
        #: Why no more could be started: a full disk, no process left.
        self.problem: str | None = None
        #: How long it is until the first worker that waits for an account may start; None if none waits for one.
        self.held_s: float | None = None


def dispatch(tree: TreeDir, *, given: Blobs | None = None, lender: WorkerId | None = None) -> Dispatched:
    """Start the workers that can start, and give each shim its order; returns before the shims have answered."""
    is_idle = not read_queue(tree) and not guests_of(tree) and not tree.stop_order.exists()
    if is_idle and not deferred.are_any():
        return Dispatched()
    with locked(tree.queue_lock):
        done = dispatch_locked(tree, given=given, lender=lender)
    complete_dispatch(tree, done, given)
    return done


def complete_dispatch(
    tree: TreeDir, done: Dispatched, given: Blobs | None = None, folder: FilePath | None = None
) -> None:
    """Do what a dispatch leaves to be done without the queue's lock; does not wait for the shims' answers."""
    give_orders(tree, done, given, folder)
    for launched in done.launches:
        os.close(launched.answer_fd)
    for ticket in done.removed:
        mark_stale(tree.sibling(ticket.task_id))
    if done.launches:
        replace_spares(tree)


def give_orders(tree: TreeDir, done: Dispatched, given: Blobs | None = None, folder: FilePath | None = None) -> None:
    """Give each launched shim its order, and start a waker where one is needed; the queue's lock must be free again."""
    if done.launches:
        folder = folder or environment.store_folder()
        for launched in done.launches:
            hand_over(launched, tree, (given or {}).get(launched.ticket.worker_id), str(folder))
    if done.held_s is not None:
        from agentctl.supervision.dispatch.waking import see_to_wake  # Few workers wait for an account.

        see_to_wake(tree, folder or environment.store_folder())


def answers(done: Dispatched) -> dict[str, dict[str, object]]:
    """Wait until each launched worker runs or has failed to start; return the shims' answers by instance."""
    return {launched.ticket.instance: await_answer(launched) for launched in done.launches}


def dispatch_locked(
    tree: TreeDir,
    *,
    given: Blobs | None = None,
    lender: WorkerId | None = None,
    shim: processes.Identity | None = None,
    folder: FilePath | None = None,
) -> Dispatched:
    """Start the workers that can start. The caller holds the queue's lock; `carry_out` does the rest.

    Args:
        given: Environments that the caller itself has, so that they do not wait in memory.
        lender: The worker whose place may be given to a descendant when no slot is free.
        shim: The calling shim, which takes the first place and ticket itself.
        folder: Where environments wait. A shim has this from its order, since its own environment is empty.
    """
    done, folder = Dispatched(), folder or environment.store_folder()
    carry_out_the_rest(tree, folder)
    write_deferred(tree)
    queue, holds = read_queue(tree), QueueHolds(tree)
    found = survey(tree, known_limits(tree).max_concurrent_agents, len(queue) + len(guests_of(tree)))
    try:
        move_guests(tree, found, holds)
        held, room = HeldInTree(tree), _Room(tree, found)
        for ticket in ready_tickets(tree, queue, starting_of(found), given or (), done.removed, holds):
            if not _has_environment(ticket, folder, given) or held.holds(_agent_of(tree, ticket)):
                continue
            place = room.place_for(ticket) or idle_place(tree, found) or _lent(tree, ticket, lender, found)
            place = place or ahead_place(tree, ticket.worker_id, found)
            if place is None and lender is None and not found.free:
                break
            if place is None:
                continue
            try:
                _give_place(tree, ticket, place, shim, done)
            except (StorageError, OSError) as error:
                place.vacate(None)  # Where its name stayed, it would have two places once it is started in another.
                why = error.strerror if isinstance(error, OSError) else error.message
                done.problem = f"it could not be started: {why}"
                break
        done.held_s = held.soonest_s
        held.forget_freed()
        left = [ticket for ticket in queue if ticket not in done.removed] if done.removed else []
        for ticket in done.removed:
            forget_environment(ticket.environment, folder, left)
    finally:
        found.release()
    return done


class _Room:
    """The free slots, as far as each worker in the queue may have one: no worker lifts the cap for what it starts."""

    def __init__(self, tree: TreeDir, found: Survey) -> None:
        self._tree, self._free, self._taken = tree, found.free, len(found.taken)

    def place_for(self, ticket: Ticket) -> Place | None:
        """Return a free slot; None if there is none, or if as many are taken as when its parent was started."""
        cap = held_cap(_agent_of(self._tree, ticket)) if self._free else None
        if not self._free or (cap is not None and self._taken >= cap):
            return None
        self._taken += 1
        return self._free.pop(0)


def _give_place(tree: TreeDir, ticket: Ticket, place: Place, shim: processes.Identity | None, done: Dispatched) -> None:
    if shim is not None and done.mine is None:
        place.occupy(Occupant(ticket.worker_id, shim))
        done.mine = (ticket, place)
    else:
        done.launches.append(launch(tree, ticket, place))


def check_free(task: TaskDir, parent: WorkerDir | None, wanted: int, cap: int) -> None:
    """Raise `NoFreeSlot` unless `wanted` more workers of a task could start now; the caller holds the queue's lock.

    Args:
        parent: The worker that starts them, if it is one.
        cap: How many may be at work, for the one that asks.
    """
    tree = tree_of(task)
    queue, holds = read_queue(tree), QueueHolds(tree)
    _refuse_held(tree, holds.of_start(task.id, [] if parent is None else [parent, *ancestors(parent)]))
    found = survey(tree, cap, wanted + len(queue) + len(guests_of(tree)))
    try:
        move_guests(tree, found, holds)
        folder, held = environment.store_folder(), HeldInTree(tree)
        tickets = ready_tickets(tree, queue, starting_of(found), (), [], holds)
        known = (ticket for ticket in tickets if _has_environment(ticket, folder, None))
        ready = (ticket for ticket in known if not held.holds(_agent_of(tree, ticket)))
        free = len(found.free) + count_idle(tree, found)
        spoken_for = sum(1 for _ in islice(ready, free))
        if free - spoken_for < wanted:
            names = describe_taken(found)
            if wanted > 1:
                why = f"{wanted} workers need a slot each, and {max(0, free - spoken_for)} of {cap} are free"
            elif names:
                why = f"{len(found.taken)} of {cap} slots are in use: {names}"
            else:
                why = f"all {cap} slots are spoken for"
            raise NoFreeSlot(why, hint=_ways_on(tree, parent))
    finally:
        found.release()


def _ways_on(tree: TreeDir, parent: WorkerDir | None) -> tuple[Step, ...]:
    """Return how to start it all the same; a person, where waiting is not the default, also how to make it that."""
    now = (
        WithArguments(Argument("queue"), " waits for a free one"),
        Next("wait for any", does="waits for the next to end"),
    )
    config = cached(tree)
    if parent is not None or (config is not None and config.queueing):
        return now
    return (*now, Next("queue every start", str(tree.task_file)))


def _refuse_held(tree: TreeDir, hold: QueueHold | None) -> None:
    if hold is not None:
        raise NoFreeSlot(
            f"nothing is started: {hold.in_words(tree)}",
            hint=(WithArguments(Argument("queue"), " puts it into the queue"), hold.next_step()),
        )


def _has_environment(ticket: Ticket, folder: FilePath, given: Blobs | None) -> bool:
    if given and ticket.worker_id in given:
        return True
    return environment.waits(folder, ticket.environment)


def _lent(tree: TreeDir, ticket: Ticket, lender: WorkerId | None, found: Survey) -> Place | None:
    """Return the lender's guest place, if the worker of `ticket` descends from the lender and the place is free."""
    if lender is None or not _descends(tree, ticket, lender):
        return None
    return next(filter(None, (guest_place(tree, place, found) for place in found.places_of(lender))), None)


def _descends(tree: TreeDir, ticket: Ticket, lender: WorkerId) -> bool:
    return any(above.id == lender for above in ancestors(_agent_of(tree, ticket)))


def _agent_of(tree: TreeDir, ticket: Ticket) -> WorkerDir:
    return tree.worker_at(ticket.worker_id)
