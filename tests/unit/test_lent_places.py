"""At stake: whatever is cut off or killed meanwhile, no more are at work than the cap says, and no place is lost."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agentctl.adapters.locks import try_lock
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import TreeDir
from agentctl.adapters.treedir import tree_at
from agentctl.domain.names import WorkerId
from agentctl.errors import AgentctlError
from agentctl.operations.wait import loan
from agentctl.supervision.dispatch import slots
from agentctl.supervision.dispatch.idle_places import come_back, idle_place
from agentctl.supervision.dispatch.slots import IDLE, Survey, held_places, lend, move_guests, place_of, survey
from agentctl.supervision.queue.places import Occupant, Place
from agentctl.supervision.queue.queue_hold import QueueHolds

CAP = 2
#: Of the renames and removals of a step, these pass before one fails; None: the disk is well.
CUTS = st.sampled_from([None, None, None, 0, 1, 2, 3])
#: Behind so many looks at a place of a step one worker is killed.
STRIKES = st.sampled_from([None, None, 0, 1, 2, 3, 4, 5, 6])


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
        #: Of a worker whose shim was killed: None.
        self.places: dict[WorkerId, Place | None] = {}
        self.loans: dict[WorkerId, int] = {}
        self.working: set[WorkerId] = set()
        #: Those that have a message, and a guest in their place.
        self.waiting: set[WorkerId] = set()
        #: Who is killed, and behind how many looks.
        self.struck: tuple[WorkerId, int] | None = None
        self._patches = (
            mock.patch.object(slots, "is_still_there", lambda _, occupant: occupant.worker_id in self._shimless()),
            mock.patch.object(slots, "try_lock", self._looked_at),
        )
        for one in self._patches:
            one.start()

    def teardown(self) -> None:
        """Leave nothing open."""
        for one in self._patches:
            one.stop()
        for fd in (*(place.fd for place in self.places.values() if place is not None), *self.loans.values()):
            os.close(fd)
        self._folder.cleanup()

    def _shimless(self) -> list[WorkerId]:
        return [worker for worker, place in self.places.items() if place is None]

    def _looked_at(self, path: FilePath, *, is_written: bool = True) -> int | None:
        if self.struck is not None:
            worker, left = self.struck
            self.struck = (worker, left - 1) if left > 0 else None
            if left == 0 and worker in self.places:
                self.end_one(worker, is_killed=True)
        return try_lock(path, is_written=is_written)

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
            return found.free.pop(0) if found.free else idle_place(self.tree, found)
        finally:
            found.release()

    def begin_one(self) -> WorkerId:
        """Start a worker in a place that must be there."""
        place = self.free_place()
        assert place is not None, (sorted(self.places), sorted(os.listdir(self.tree.slots)))
        return self.occupied(place)

    def occupied(self, place: Place) -> WorkerId:
        self.many += 1
        worker = WorkerId("t1", f"w{self.many}")
        place.occupy(Occupant(worker))
        self.places[worker] = place
        self.working.add(worker)
        return worker

    @rule(cut=CUTS, data=st.data())
    def begin(self, cut: int | None, data: st.DataObject) -> None:
        """Start one more worker, if there is a place for it."""
        self.strike(data)
        with suppress(OSError, AgentctlError), cut_off(cut):
            if (place := self.free_place()) is not None:
                self.occupied(place)

    def strike(self, data: st.DataObject) -> None:
        """Have one be killed during the step, perhaps."""
        after = data.draw(STRIKES) if self.places else None
        self.struck = None if after is None else (data.draw(st.sampled_from(sorted(self.places))), after)

    @rule(data=st.data())
    @precondition(lambda self: self.places)
    def lose_shim(self, data: st.DataObject) -> None:
        """Have the shim of one be killed; the worker lives on."""
        self.lose_shim_of(data.draw(st.sampled_from(sorted(self.places))))

    def lose_shim_of(self, worker: WorkerId) -> None:
        """Kill a shim."""
        names = [occupant.worker_id for _, occupant in held_places(self.tree)]
        if (place := self.places[worker]) is not None and names.count(worker) == 1:
            place.let_go()
            self.places[worker] = None

    @rule(number=st.integers(1, 3))
    def fail_to_start(self, number: int) -> None:
        """Have a start fail, or be killed: the place names a worker that gets another one."""
        place = self.free_place()
        if place is not None:
            place.occupy(Occupant(WorkerId("t1", f"w{self.many + number}")))
            place.let_go()

    @precondition(lambda self: self.working)
    @rule(data=st.data(), cut=CUTS)
    def rest(self, data: st.DataObject, cut: int | None) -> None:
        """Have one wait for a message."""
        worker = data.draw(st.sampled_from(sorted(self.working)))
        self.working.discard(worker)
        self.strike(data)
        with suppress(OSError, AgentctlError), cut_off(cut):
            self.lend_place(worker)

    def lend_place(self, worker: WorkerId) -> None:
        """Have one at rest lend its place, unless it does already."""
        self.working.discard(worker)
        if worker not in self.loans and (loan := lend(self.tree, IDLE, worker)) is not None:
            self.loans[worker] = loan
        self.look()

    @precondition(lambda self: self._at_rest())
    @rule(data=st.data(), cut=CUTS)
    def go_on(self, data: st.DataObject, cut: int | None) -> None:
        """Have one get a message, or try again to take it up."""
        worker = data.draw(st.sampled_from(self._at_rest()))
        self.waiting.add(worker)
        self.strike(data)
        with suppress(OSError, AgentctlError), cut_off(cut):
            self.come_back(worker)

    def come_back(self, worker: WorkerId) -> None:
        """Have one at rest go on, if there is no guest in its place."""
        if worker in self.loans:
            os.close(self.loans.pop(worker))
        self.look()
        if come_back(self.tree, worker) and worker in self.places:
            self.waiting.discard(worker)
            self.working.add(worker)

    @precondition(lambda self: self.places)
    @rule(data=st.data(), cut=CUTS)
    def end(self, data: st.DataObject, cut: int | None) -> None:
        """Have one end, whatever it does."""
        self.end_one(data.draw(st.sampled_from(sorted(self.places))))
        self.strike(data)
        with suppress(OSError, AgentctlError), cut_off(cut):
            self.look()

    def end_one(self, worker: WorkerId, *, is_killed: bool = False) -> None:
        """End one; the place of one that is killed, or has no shim, goes on naming it."""
        if worker in self.loans:
            os.close(self.loans.pop(worker))
        place = self.places.pop(worker)
        if place is not None:
            place.let_go() if is_killed else place.vacate(None)
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
        self.struck = None
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


@pytest.mark.parametrize("after", range(16))
@pytest.mark.parametrize("is_begun", [True, False])
def test_a_host_that_is_killed_between_two_looks_leaves_its_right_to_its_guest(
    workers: Workers, after: int, *, is_begun: bool
) -> None:
    """At whichever look: one that saw the host and one that missed it, and its guest worked beside one too many."""
    lender, _ = workers.begin_one(), workers.begin_one()
    workers.lend_place(lender)
    host = workers.begin_one()
    workers.lend_place(host)
    workers.begin_one()
    workers.lose_shim_of(host)
    workers.struck = (host, after)
    if is_begun:
        if (place := workers.free_place()) is not None:
            workers.occupied(place)
    else:
        workers.come_back(lender)
    workers.no_more_than_the_cap_are_at_work()


def test_a_wait_lends_its_place_also_while_others_look_which_loans_are_held(workers: Workers) -> None:
    """A look takes the lock of a loan for a moment: the wait took it for a loan of another wait, and lent nothing."""
    lender = workers.begin_one()

    def lend_beside_a_look(tree: TreeDir, kind: str, worker: WorkerId) -> int | None:
        queue = try_lock(tree.queue_lock)
        looked_at = None if queue is None else try_lock(tree.slots / f"{worker.task_id}.{worker.instance}{kind}")
        try:
            return lend(tree, kind, worker)
        finally:
            for fd in filter(None, (queue, looked_at)):
                os.close(fd)

    me = SimpleNamespace(task=workers.tree, worker=SimpleNamespace(id=lender))
    live_task: Any = SimpleNamespace(tree=workers.tree, watch=mock.Mock())
    with mock.patch.multiple(loan, caller=lambda: me, lend=lend_beside_a_look), closing(loan.Loan(live_task)) as lent:
        assert lent.lender() == lender


Workers.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestLentPlaces = Workers.TestCase
