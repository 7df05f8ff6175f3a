"""Whether the queue of a tree of tasks stands still: which workers in it nobody starts any more.

A queue is moved by shims, when their workers end, and by commands while they run. If all of them were killed, or the
machine was restarted, a worker stays in it that could start at once: it is stranded. So is a worker whose environment
is lost, whoever lives. What waits for a slot, for another worker, for its account or for a person is not, nor what a
person holds in the queue.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from agentctl.adapters.locks import is_alive_held, locked
from agentctl.adapters.processes import Life, life_of
from agentctl.adapters.taskdir import TreeDir, WorkerDir
from agentctl.adapters.taskyaml.cache import known_limits
from agentctl.errors import AgentctlError
from agentctl.lean import NamedTuple
from agentctl.supervision.account.waiters import HeldInTree
from agentctl.supervision.dispatch.eligibility import is_begun, waits_for_others
from agentctl.supervision.dispatch.slots import held_places
from agentctl.supervision.life.judging import Condition, judge
from agentctl.supervision.queue.places import Occupant, is_slot
from agentctl.supervision.queue.queue_hold import QueueHolds
from agentctl.supervision.queue.tickets import Ticket, read_queue
from agentctl.supervision.worker import environment
from agentctl.supervision.worker.environment import NO_ENVIRONMENT
from agentctl.supervision.worker.spec import held_cap

#: A command that has just changed the queue, or a shim that is about to leave, looks at it within this time.
_LOOK_AGAIN_S = 0.1
#: Whoever holds the queue's lock for longer than this moves the queue.
_PATIENCE_S = 1.0
_MAY_LIVE = (Condition.SUPERVISED, Condition.UNSUPERVISED, Condition.UNFOLLOWED, Condition.ELSEWHERE)


class Standstill(NamedTuple):
    """The stranded workers of a tree of tasks, by their tickets."""

    #: Their environment is gone: they start only once somebody gives them another.
    without_environment: list[Ticket]
    #: The next look at the queue moves them, and nobody is alive who would look.
    unmoved: list[Ticket]

    @property
    def tickets(self) -> list[Ticket]:
        """All of them."""
        return [*self.without_environment, *self.unmoved]


_NONE = Standstill([], [])


def standstill_of(tree: TreeDir) -> Standstill:
    """Return the stranded workers of a tree; none where that cannot be told. The queue's lock must be free.

    Two looks have to agree, the second one under the queue's lock: no spawn is in the middle of its work then. What
    lies between the looks is the moment between a change of the queue and the look of the command that has made it.
    """
    try:
        first = _look(tree)
        if not first.tickets:
            return _NONE
        time.sleep(_LOOK_AGAIN_S)
        with locked(tree.queue_lock, limit_s=_PATIENCE_S):
            second = _look(tree)
    except (AgentctlError, OSError):
        return _NONE
    return Standstill(*([one for one in new if one in set(old)] for old, new in zip(first, second, strict=True)))


def _look(tree: TreeDir) -> Standstill:
    queue = read_queue(tree)
    if not queue:
        return _NONE
    folder = environment.store_folder()
    gone = {token for token in {ticket.environment for ticket in queue} - {NO_ENVIRONMENT}
            if not environment.waits(folder, token)}  # fmt: skip
    without = [ticket for ticket in queue if ticket.environment in gone] if gone else []
    without = [ticket for ticket in without if not is_begun(tree.worker_at(ticket.worker_id))]
    places = list(held_places(tree))
    if any(_has_shim(tree, occupant) for _, occupant in places):
        return Standstill(without, [])
    taken = sum(is_slot(name) and may_be_there(tree, occupant) for name, occupant in places)
    others = [ticket for ticket in queue if ticket.environment not in gone]
    return Standstill(without, list(_movable(tree, others, taken)))


def _has_shim(tree: TreeDir, occupant: Occupant) -> bool:
    """Return whether a process guards the occupant of a place: it looks at the queue when it leaves."""
    if occupant.shim is not None and life_of(occupant.shim) is Life.ALIVE:
        return True
    return is_alive_held(tree.worker_at(occupant.worker_id).shim)


def may_be_there(tree: TreeDir, occupant: Occupant) -> bool:
    """Return whether a place's occupant may be alive, without touching the lock of the place."""
    if occupant.shim is not None and life_of(occupant.shim) is Life.ALIVE:
        return True
    worker = tree.worker_at(occupant.worker_id)
    return worker.path.exists() and judge(worker) in _MAY_LIVE


def _movable(tree: TreeDir, tickets: list[Ticket], taken: int) -> Iterator[Ticket]:
    """Yield the tickets that a look at the queue would start, or end because they can never start."""
    cap, held = known_limits(tree).max_concurrent_agents, HeldInTree(tree)
    is_woken, holds = is_alive_held(tree.waker), QueueHolds(tree)
    for ticket in tickets if taken < cap else ():
        worker = tree.worker_at(ticket.worker_id)
        if is_begun(worker) or waits_for_others(tree, ticket) or not _has_room(worker, taken):
            continue
        if holds.of(worker) is not None:
            continue
        if not (is_woken and held.holds(worker)):  # Without its waker, nobody starts it once the time has come.
            yield ticket


def _has_room(worker: WorkerDir, taken: int) -> bool:
    cap = held_cap(worker)
    return cap is None or taken < cap
