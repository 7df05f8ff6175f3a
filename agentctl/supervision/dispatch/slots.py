"""Slots, the right to run: a slot is a kernel lock that a live shim holds, so that none can leak.

`slots/<n>` are the slots of a tree of tasks. `slots/<n>.guest` is the place that the occupant of slot n lends, while it
waits for its own descendants or, kept, for a message. Each place names its occupant. A loan is a lock of the lender's:
`slots/<task>.<instance>.loan` is held by a wait for its descendants; `.idle` by an agent that was kept and has nothing
to do, and whose guest may be any worker. It has the name of its lender, who may be moved from place to place.

Places are taken and given back only under the queue's lock, so that trying a lock disturbs nobody. But whoever has a
place may be killed at any moment. So one look at the beginning decides who is there (`survey`): a second one, which
misses a worker that still has a guest, would give away the right that the guest uses.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from agentctl.adapters import processes
from agentctl.adapters.files import read_known
from agentctl.adapters.locks import locked, try_lock
from agentctl.adapters.opening import OddFile
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import TreeDir
from agentctl.domain.names import WorkerId, first_of
from agentctl.errors import AgentctlError
from agentctl.lean import NamedTuple
from agentctl.supervision.life.belonging import claim_of, record_of
from agentctl.supervision.life.judging import Condition, judge, settle
from agentctl.supervision.life.process_tree import UnsupervisedTree
from agentctl.supervision.queue.places import Occupant, Place, is_slot, names_shim, occupants_in, read_occupant
from agentctl.supervision.queue.queue_hold import QueueHolds

GUEST = ".guest"
LOAN = ".loan"
IDLE = ".idle"
#: Begins the places of guests without a host (`dispatch.ahead_places`).
AHEAD = "ahead-"
#: Stands for the occupant of a taken slot whose file names none.
_UNKNOWN = WorkerId("", "?")


def _names(tree: TreeDir) -> list[str]:
    try:
        return os.listdir(tree.slots)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _try_lock(path: FilePath, *, is_written: bool = True) -> int | None:
    """Take the lock of a place; None if it is held, or if the file cannot be a place."""
    try:
        return try_lock(path, is_written=is_written)
    except OddFile:
        return None


class Survey(NamedTuple):
    """The places at this moment (under the queue's lock)."""

    #: The occupants of the slots that are taken, by the names of these.
    taken: dict[str, Occupant]
    free: list[Place]
    #: Those of the guest places.
    guests: dict[str, Occupant]
    #: The names of the loans that are held.
    loans: set[str]

    def release(self) -> None:
        """Release the free slots that were not given away."""
        for place in self.free:
            os.close(place.fd)
        self.free.clear()

    def lends(self, place: str, *kinds: str) -> bool:
        """Return whether the occupant of a place lends it, in one of these ways."""
        occupant = self.taken.get(place) or self.guests.get(place)
        return occupant is not None and any(_loan_of(occupant.worker_id, kind) in self.loans for kind in kinds)

    def places_of(self, worker_id: WorkerId) -> list[str]:
        """Return the names of the places that a worker has: one, but for what a start that failed has left behind."""
        places = (*self.taken.items(), *self.guests.items())
        return [name for name, occupant in places if occupant.worker_id == worker_id]


def survey(tree: TreeDir, cap: int, wanted: int) -> Survey:
    """Take up to `wanted` free slots, as far as `cap` allows beside the taken ones (under the queue's lock).

    A place that nobody holds counts as taken if its occupant may still be alive: that worker is unsupervised.
    """
    known = {int(name) for name in _names(tree) if is_slot(name)}
    found = Survey({}, [], {}, set())
    try:
        for number in sorted(known | set(range(1, cap + 1))):
            if number in known or len(found.free) < wanted:
                _look_at_slot(tree, str(number), found)
        for name in guests_of(tree):
            place, occupant = _look_at(tree, name)
            found.guests.update({} if occupant is None else {name: occupant})
            if place is not None:
                place.let_go()
        found.loans.update(_held_loans(tree))
    except BaseException:
        found.release()
        raise
    room = min(wanted, max(0, cap - len(found.taken)))
    for place in found.free[room:]:
        os.close(place.fd)
    del found.free[room:]
    return found


def _look_at_slot(tree: TreeDir, name: str, found: Survey) -> None:
    place, occupant = _look_at(tree, name)
    if place is not None:
        found.free.append(place)
    if occupant is not None:
        found.taken[name] = occupant


def _look_at(tree: TreeDir, name: str) -> tuple[Place | None, Occupant | None]:
    """Return a place that is free, taken now; or the occupant of one that is not."""
    fd = _try_lock(tree.slots / name)
    if fd is None:
        return None, read_occupant(tree.slots / name) or Occupant(_UNKNOWN)
    place = Place(fd)
    try:
        occupant = read_occupant(tree.slots / name) if os.fstat(fd).st_size else None
        is_free = occupant is None or not is_still_there(tree, occupant)
    except BaseException:
        place.let_go()
        raise
    if is_free:
        return place, None
    place.let_go()
    return None, occupant


def is_still_there(tree: TreeDir, occupant: Occupant) -> bool:
    """Return whether any process of an occupant without a shim may be alive; write down what is proven about it."""
    worker = tree.worker_at(occupant.worker_id)
    if not worker.path.exists():
        return False
    condition = judge(worker)
    if condition in (Condition.UNSUPERVISED, Condition.UNFOLLOWED, Condition.ELSEWHERE):
        return True
    if condition is Condition.SUPERVISED:  # By an undertaker, which has no place, or by a shim in another place.
        shim = processes.identity_from(read_known(worker.shim))
        return shim is None or not names_shim(tree.slots, shim)
    try:
        settle(worker, condition)
    except (AgentctlError, OSError):  # Its exit.json is not a decision: only its processes count.
        return not UnsupervisedTree(claim_of(worker, record_of(worker))).is_gone()
    return False


def held_places(tree: TreeDir) -> Iterator[tuple[str, Occupant]]:
    """Yield (name, occupant) of each slot and guest place that names an occupant, even if its start was cut off."""
    for name, occupant in occupants_in(tree.slots):
        if is_slot(name) or name.endswith(GUEST):
            yield name, occupant


def place_of(tree: TreeDir, worker_id: WorkerId) -> str | None:
    """Return the name of a place that names a worker; None if none does. `Survey.places_of` are those that it has."""
    for name, occupant in held_places(tree):
        if occupant.worker_id == worker_id:
            return name
    return None


def has_slot(tree: TreeDir, worker_id: WorkerId) -> bool:
    """Return whether a worker has a slot by now, and not only a place beyond them (`dispatch.ahead_places`).

    A slot may go on naming a worker whose start there was cut off: what counts is decided as for a dispatch.
    """
    if not any(is_slot(name) and occupant.worker_id == worker_id for name, occupant in held_places(tree)):
        return False  # Asked often: without the queue's lock.
    with locked(tree.queue_lock):
        return any(map(is_slot, survey(tree, 0, 0).places_of(worker_id)))


def guests_of(tree: TreeDir) -> list[str]:
    """Return the names of the guest places, taken or not."""
    return [name for name in _names(tree) if name.endswith(GUEST)]


def move_guests(tree: TreeDir, found: Survey, holds: QueueHolds) -> None:
    """Move guests to free slots before other workers get these, so that lenders get their own places back.

    The lock is on the file, so a rename moves the guest: its shim need not know. Its own guests move along.
    A guest without a host has not begun: while its queue is held, it stays where it is.
    """
    _close_gaps(tree, found.guests)
    for place in list(found.free):
        slot = _path_of(tree, place)
        guests = [name for name in found.guests if not _rests(tree, name, holds)]
        if not guests:
            return
        # The slot's own guest first: what another guest lends itself would take the name of this one.
        name = slot.name + GUEST if slot.name + GUEST in guests else min(guests, key=lambda name: (len(name), name))
        found.free.remove(place)
        found.taken[slot.name] = found.guests[name]
        try:
            _move(tree, name, slot.name, found.guests)
        finally:
            os.close(place.fd)


def _rests(tree: TreeDir, name: str, holds: QueueHolds) -> bool:
    occupant = read_occupant(tree.slots / name) if name.startswith(AHEAD) else None
    return occupant is not None and holds.of(tree.worker_at(occupant.worker_id)) is not None


def _close_gaps(tree: TreeDir, guests: dict[str, Occupant]) -> None:
    """Move up a guest whose host, itself a guest, has ended: it uses the right to run that the first host lends."""
    for name in sorted(guests, key=len):
        host = name.removesuffix(GUEST)
        if host.endswith(GUEST) and host not in guests:
            guests[host] = guests[name]
            _move(tree, name, host, guests)
            _close_gaps(tree, guests)
            return


def _move(tree: TreeDir, name: str, to: str, guests: dict[str, Occupant]) -> None:
    """Move the occupant of a place, with its guests.

    The nearest first: where a chain moves up by one, each takes the name that the one above it has just left.

    Args:
        guests: Those that are taken, whose names change with it.
    """
    os.rename(tree.slots / name, tree.slots / to)
    guests.pop(name)
    for below in sorted((other for other in guests_of(tree) if other.startswith(name + ".")), key=len):
        os.rename(tree.slots / below, tree.slots / (to + below[len(name) :]))
        if below in guests:
            guests[to + below[len(name) :]] = guests.pop(below)


def starting_of(found: Survey) -> set[WorkerId]:
    """Return the workers that taken places name: a shim may be on its way to each."""
    return {occupant.worker_id for occupant in (*found.taken.values(), *found.guests.values())}


def _path_of(tree: TreeDir, place: Place) -> FilePath:
    mine = os.fstat(place.fd)
    for name in _names(tree):
        if is_slot(name) and os.path.samestat(mine, os.stat(tree.slots / name)):
            return tree.slots / name
    raise LookupError("a place without a file")


def lend(tree: TreeDir, kind: str, lender: WorkerId) -> int | None:
    """Begin a loan, which lasts as long as the descriptor; None while another process of the worker has one.

    Args:
        kind: `IDLE` or `LOAN`.
    """
    return _try_lock(tree.slots / _loan_of(lender, kind))


def _loan_of(lender: WorkerId, kind: str) -> str:
    return f"{lender.task_id}.{lender.instance}{kind}"


def _held_loans(tree: TreeDir) -> Iterator[str]:
    """Yield the names of the loans that are held, and remove the others: one that is just being begun is made anew."""
    for name in _names(tree):
        if name.endswith((IDLE, LOAN)):
            with contextlib.suppress(OddFile):  # It cannot be a loan.
                fd = try_lock(tree.slots / name)
                if fd is None:
                    yield name
                    continue
                with contextlib.suppress(OSError):  # It stays until a later look.
                    os.unlink(tree.slots / name)
                os.close(fd)


def guest_place(tree: TreeDir, place: str, found: Survey) -> Place | None:
    """Take the guest place beside `place`; None if it is taken."""
    name = place + GUEST
    fd = None if name in found.guests else _try_lock(tree.slots / name)
    if fd is None:
        return None
    # Whoever gets it may be killed before the next worker is given a place, and leave something at work.
    found.guests[name] = Occupant(_UNKNOWN)
    return Place(fd)


def describe_taken(found: Survey) -> str:
    """Return the names of the workers that have the slots."""
    return first_of(sorted(occupant.worker_id.instance for occupant in found.taken.values()))


def workers_being_started(tree: TreeDir) -> set[WorkerId]:
    """Return the workers that places name whose locks are held; some of them may run already."""
    found = set()
    for name, occupant in held_places(tree):
        fd = _try_lock(tree.slots / name, is_written=False)  # Of a disk that is full or read-only, too.
        if fd is None:
            found.add(occupant.worker_id)
        else:
            os.close(fd)  # A shim that was killed left the name behind.
    return found
