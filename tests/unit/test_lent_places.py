"""At stake: where the disk cuts off a move of places, no more are at work than the cap says, and no place is lost."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agentctl.adapters.treedir import tree_at
from agentctl.domain.names import WorkerId
from agentctl.errors import AgentctlError
from agentctl.supervision.dispatch.idle_places import come_back, idle_place
from agentctl.supervision.dispatch.slots import IDLE, Survey, lend, move_guests, place_of, survey
from agentctl.supervision.queue.places import Occupant, Place
from agentctl.supervision.queue.queue_hold import QueueHolds

CAP = 2
#: Of the renames and removals of a step, these pass before one fails; None: the disk is well.
CUTS = st.sampled_from([None, None, None, 0, 1, 2, 3])


@contextmanager
def cut_off(after: int | None) -> Iterator[None]:
    """Have the disk refuse one change of a name within the block, behind so many others."""
    left = [after]

    def counted(real: Callable[..., None]) -> Callable[..., None]:
        def change(*args: Any, **options: Any) -> None:
            passing = left[0]
            left[0] = passing - 1 if passing is not None and passing >= 0 else passing
            if passing == 0:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            real(*args, **options)

        return change

    with mock.patch("os.rename", counted(os.rename)), mock.patch("os.unlink", counted(os.unlink)):
        yield


class Workers(RuleBasedStateMachine):
    """Workers that begin, wait for a message, go on and end, each by what its host and its shim call."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory(prefix="agentctl-places-")
        Path(self._folder.name, "slots").mkdir()
        self.tree = tree_at(self._folder.name)
        self.many = 0
        self.places: dict[WorkerId, Place] = {}
        self.loans: dict[WorkerId, int] = {}
        self.working: set[WorkerId] = set()
        #: Those that have a message, and a guest in their place.
        self.waiting: set[WorkerId] = set()

    def teardown(self) -> None:
        """Leave nothing open."""
        for fd in (*(place.fd for place in self.places.values()), *self.loans.values()):
            os.close(fd)
        self._folder.cleanup()

    # -- what a dispatch does, under the queue's lock --------------------------------------------------------------

    def _moved(self) -> Survey:
        found = survey(self.tree, CAP, 3)
        try:
            move_guests(self.tree, found, QueueHolds(self.tree))
        except BaseException:
            found.release()
            raise
        return found

    def look(self) -> None:
        """Move who is to be moved."""
        self._moved().release()

    def free_place(self) -> Place | None:
        """Take a free place."""
        found = self._moved()
        try:
            return found.free.pop(0) if found.free else idle_place(self.tree)
        finally:
            found.release()

    def begin_one(self) -> WorkerId:
        """Start a worker in a place that must be there."""
        place = self.free_place()
        assert place is not None, (sorted(self.places), sorted(os.listdir(self.tree.slots)))
        return self._occupied(place)

    def _occupied(self, place: Place) -> WorkerId:
        self.many += 1
        worker = WorkerId("t1", f"w{self.many}")
        place.occupy(Occupant(worker))
        self.places[worker] = place
        self.working.add(worker)
        return worker

    @rule(cut=CUTS)
    def begin(self, cut: int | None) -> None:
        """Start one more worker, if there is a place for it."""
        with suppress(OSError, AgentctlError), cut_off(cut):
            if (place := self.free_place()) is not None:
                self._occupied(place)

    @precondition(lambda self: self.working)
    @rule(data=st.data(), cut=CUTS)
    def rest(self, data: st.DataObject, cut: int | None) -> None:
        """Have one wait for a message."""
        worker = data.draw(st.sampled_from(sorted(self.working)))
        self.working.discard(worker)
        with suppress(OSError, AgentctlError), cut_off(cut):
            self.lend_place(worker)

    def lend_place(self, worker: WorkerId) -> None:
        """Have one at rest lend its place, unless it does already."""
        self.working.discard(worker)
        place = place_of(self.tree, worker)
        assert place is not None
        if worker not in self.loans and (loan := lend(self.tree, place, IDLE, worker)) is not None:
            self.loans[worker] = loan
        self.look()

    @precondition(lambda self: self._at_rest())
    @rule(data=st.data(), cut=CUTS)
    def go_on(self, data: st.DataObject, cut: int | None) -> None:
        """Have one get a message, or try again to take it up."""
        worker = data.draw(st.sampled_from(self._at_rest()))
        self.waiting.add(worker)
        with suppress(OSError, AgentctlError), cut_off(cut):
            self.come_back(worker)

    def come_back(self, worker: WorkerId) -> None:
        """Have one at rest go on, if there is no guest in its place."""
        if worker in self.loans:
            os.close(self.loans.pop(worker))
        self.look()
        place = place_of(self.tree, worker)
        assert place is not None
        if come_back(self.tree, place):
            self.waiting.discard(worker)
            self.working.add(worker)

    @precondition(lambda self: self.places)
    @rule(data=st.data(), cut=CUTS)
    def end(self, data: st.DataObject, cut: int | None) -> None:
        """Have one end, whatever it does."""
        self.end_one(data.draw(st.sampled_from(sorted(self.places))))
        with suppress(OSError, AgentctlError), cut_off(cut):
            self.look()

    def end_one(self, worker: WorkerId) -> None:
        """End one."""
        if worker in self.loans:
            os.close(self.loans.pop(worker))
        self.places.pop(worker).vacate(None)
        self.working.discard(worker)
        self.waiting.discard(worker)

    def _at_rest(self) -> list[WorkerId]:
        return sorted(self.places.keys() - self.working)

    # -- what must hold --------------------------------------------------------------------------------------------

    @invariant()
    def no_more_than_the_cap_are_at_work(self) -> None:
        """A place that is lent twice lets one more be at work."""
        assert len(self.working) <= CAP, (sorted(self.working), sorted(os.listdir(self.tree.slots)))

    @invariant()
    def each_has_a_place_of_its_own(self) -> None:
        """A move over somebody else's name would take its place."""
        assert all(place_of(self.tree, worker) is not None for worker in self.places)

    @precondition(lambda self: self.places)
    @rule()
    def all_that_rest_leave_their_right_to_others(self) -> None:
        """On a disk that is well: nobody is kept waiting for a right that nobody uses."""
        for worker in self._at_rest():
            self.come_back(worker) if worker in self.waiting else self.lend_place(worker)
        while len(self.working) < CAP and not self.waiting:
            self.begin_one()
        for worker in sorted(self.working):
            self.end_one(worker)
        for _ in range(len(self.waiting)):
            for worker in sorted(self.waiting):
                self.come_back(worker)
        assert not self.waiting or len(self.working) == CAP, sorted(os.listdir(self.tree.slots))


@pytest.fixture
def workers() -> Iterator[Workers]:
    """Workers that do what a test says."""
    workers = Workers()
    yield workers
    workers.teardown()


def test_a_loan_that_was_left_behind_lets_nobody_in(workers: Workers) -> None:
    """Of one that was moved to a free slot: two were let into the place that it had left, while it went on itself."""
    lender, other = workers.begin_one(), workers.begin_one()
    workers.lend_place(lender)
    guest = workers.begin_one()
    workers.lend_place(guest)
    workers.end_one(other)
    with suppress(OSError), cut_off(1):
        workers.look()
    workers.begin_one()
    workers.begin_one()
    workers.come_back(guest)
    workers.no_more_than_the_cap_are_at_work()


Workers.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestLentPlaces = Workers.TestCase
