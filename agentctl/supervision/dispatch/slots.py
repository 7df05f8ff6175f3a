"""Slots, the right to run: a slot is a kernel lock that a live shim holds, so that none can leak.

`slots/<n>` are the slots of a tree of tasks. `slots/<n>.guest` is the place that the occupant of slot n lends while it
waits for its own descendants; `slots/<n>.loan` is locked by that wait. `slots/<n>.idle` is locked by an agent that was
kept and has nothing to do: its guest may be any worker. Each place names its occupant, and each loan its lender.
Places are taken and given back only under the queue's lock, so that trying a lock disturbs nobody.

The disk may cut off any move, which is several renames. So a loan counts by the lender that it names: one that was left
behind, beside a place of somebody else's, lends nothing, and the next dispatch moves it after its lender.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator

from agentctl.adapters import processes
from agentctl.adapters.files import read_known, storage_errors, write_in_place
from agentctl.adapters.locks import try_lock
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
    """The slots at this moment (under the queue's lock)."""

    taken: list[Occupant]
    free: list[Place]

    def release(self) -> None:
        """Release the free slots that were not given away."""
        for place in self.free:
            os.close(place.fd)
        self.free.clear()


def survey(tree: TreeDir, cap: int, wanted: int) -> Survey:
    """Take up to `wanted` free slots, as far as `cap` allows beside the taken ones (under the queue's lock).

    A slot that nobody holds counts as taken if its occupant may still be alive: that worker is unsupervised.
    """
    known = {int(name) for name in _names(tree) if is_slot(name)}
    found = Survey([], [])
    try:
        for number in sorted(known | set(range(1, cap + 1))):
            if number in known or len(found.free) < wanted:
                _look_at_slot(tree, tree.slots / str(number), found)
    except BaseException:
        found.release()
        raise
    room = min(wanted, max(0, cap - len(found.taken)))
    for place in found.free[room:]:
        os.close(place.fd)
    del found.free[room:]
    return found


def _look_at_slot(tree: TreeDir, path: FilePath, found: Survey) -> None:
    fd = _try_lock(path)
    if fd is None:
        found.taken.append(read_occupant(path) or Occupant(_UNKNOWN))
        return
    found.free.append(Place(fd))  # From here on, whatever fails releases it.
    occupant = read_occupant(path) if os.fstat(fd).st_size else None
    if occupant is not None and is_still_there(tree, occupant):
        found.free.pop().let_go()
        found.taken.append(occupant)


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
    """Yield (name, occupant) of each slot and guest place that names an occupant."""
    for name, occupant in occupants_in(tree.slots):
        if is_slot(name) or name.endswith(GUEST):
            yield name, occupant


def place_of(tree: TreeDir, worker_id: WorkerId) -> str | None:
    """Return the name of the place that a worker has; None if it has none."""
    for name, occupant in held_places(tree):
        if occupant.worker_id == worker_id:
            return name
    return None


def guests_of(tree: TreeDir) -> list[str]:
    """Return the names of the guest places, taken or not."""
    return [name for name in _names(tree) if name.endswith(GUEST)]


def move_guests(tree: TreeDir, found: Survey, holds: QueueHolds) -> None:
    """Move guests to free slots before other workers get these, so that lenders get their own places back.

    The lock is on the file, so a rename moves the guest: its shim need not know. What it lends itself moves along.
    A guest without a host has not begun: while its queue is held, it stays where it is.
    """
    _close_gaps(tree)
    _fill(tree, found, holds)
    follow_lenders(tree)


def _fill(tree: TreeDir, found: Survey, holds: QueueHolds) -> None:
    for place in list(found.free):
        slot = _path_of(tree, place)
        guests = [name for name in guests_of(tree) if _is_taken(tree, name)]
        guests = [name for name in guests if not _rests(tree, name, holds)]
        if not guests:
            return
        # The slot's own guest first: what another guest lends itself would take the name of this one.
        name = slot.name + GUEST if slot.name + GUEST in guests else min(guests, key=lambda name: (len(name), name))
        found.free.remove(place)
        try:
            _move(tree, name, slot.name)
        finally:
            os.close(place.fd)
        found.taken.append(read_occupant(slot) or Occupant(_UNKNOWN))


def _rests(tree: TreeDir, name: str, holds: QueueHolds) -> bool:
    occupant = read_occupant(tree.slots / name) if name.startswith(AHEAD) else None
    return occupant is not None and holds.of(tree.worker_at(occupant.worker_id)) is not None


def _close_gaps(tree: TreeDir) -> None:
    """Move up a guest whose host, itself a guest, has ended: it uses the right to run that the first host lends."""
    for name in sorted(guests_of(tree), key=len):
        host = name.removesuffix(GUEST)
        if host.endswith(GUEST) and _is_taken(tree, name) and not _is_taken(tree, host):
            _move(tree, name, host)
            _close_gaps(tree)
            return


def _move(tree: TreeDir, name: str, to: str) -> None:
    """Move the occupant of a place, with its guests; their loans follow them.

    The nearest first: where a chain moves up by one, each takes the name that the one above it has just left.
    """
    os.rename(tree.slots / name, tree.slots / to)
    for below in sorted((other for other in guests_of(tree) if other.startswith(name + ".")), key=len):
        os.rename(tree.slots / below, tree.slots / (to + below[len(name) :]))


def follow_lenders(tree: TreeDir) -> None:
    """Give each loan the name of the place that its lender has by now, unless that of another worker still has it.

    The nearest first, as the places were moved.
    """
    loans = sorted((name for name in _names(tree) if name.endswith((IDLE, LOAN))), key=len)
    places = {str(occupant.worker_id): place for place, occupant in held_places(tree)} if loans else {}
    for name in loans:
        place, dot, kind = name.rpartition(".")
        own = places.get(_lender_at(tree, name) or "", place)
        if own != place and _lender_at(tree, own + dot + kind) is None:
            with contextlib.suppress(OSError):  # It lends nothing until the next dispatch moves it.
                os.rename(tree.slots / name, tree.slots / (own + dot + kind))


def _is_taken(tree: TreeDir, name: str) -> bool:
    """Return whether a place is taken: its lock is held, or its occupant has no shim but may be alive."""
    fd = _try_lock(tree.slots / name)
    if fd is None:
        return True
    try:
        occupant = read_occupant(tree.slots / name)
        return occupant is not None and is_still_there(tree, occupant)
    finally:
        os.close(fd)


def starting_of(tree: TreeDir, found: Survey) -> set[WorkerId]:
    """Return the workers that taken slots and guest places name: a shim may be on its way to each."""
    guests = (read_occupant(tree.slots / name) for name in guests_of(tree) if _is_taken(tree, name))
    return {occupant.worker_id for occupant in (*found.taken, *guests) if occupant}


def _path_of(tree: TreeDir, place: Place) -> FilePath:
    mine = os.fstat(place.fd)
    for name in _names(tree):
        if is_slot(name) and os.path.samestat(mine, os.stat(tree.slots / name)):
            return tree.slots / name
    raise LookupError("a place without a file")


def lend(tree: TreeDir, place: str, kind: str, lender: WorkerId) -> int | None:
    """Begin a loan of a place, which lasts as long as the descriptor; None while another one has its name.

    Args:
        kind: `IDLE` or `LOAN`.

    Raises:
        StorageError: The disk does not take it.
    """
    path = tree.slots / (place + kind)
    fd = _try_lock(path)
    if fd is not None:
        try:
            with storage_errors(path, "write"):
                write_in_place(fd, json.dumps({"lender": str(lender)}).encode())
        except BaseException:
            os.close(fd)
            raise
    return fd


def is_lent(tree: TreeDir, place: str, *kinds: str) -> bool:
    """Return whether the occupant of a place lends it, in one of these ways."""
    lenders = {_lender_at(tree, place + kind) for kind in kinds} - {None}
    occupant = read_occupant(tree.slots / place) if lenders else None
    return occupant is not None and str(occupant.worker_id) in lenders


def _lender_at(tree: TreeDir, name: str) -> str | None:
    """Return whom a loan names, `TASK/INSTANCE`; None if nobody holds it."""
    path = tree.slots / name
    if not path.exists():
        return None
    fd = _try_lock(path)
    if fd is not None:
        os.close(fd)
        return None
    return str(read_known(path).get("lender"))


def guest_place(tree: TreeDir, place: str) -> Place | None:
    """Take the guest place beside `place`; None while it has a guest."""
    path = tree.slots / (place + GUEST)
    fd = _try_lock(path)
    if fd is None:
        return None
    found = Place(fd)
    try:
        occupant = read_occupant(path)
        is_free = occupant is None or not is_still_there(tree, occupant)
    except BaseException:
        found.let_go()
        raise
    if is_free:
        return found
    found.let_go()
    return None


def describe_taken(taken: list[Occupant]) -> str:
    """Return the names of the workers that have the slots."""
    return first_of(sorted(occupant.worker_id.instance for occupant in taken))


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
