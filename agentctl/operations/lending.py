"""Within a worker, its place is lent to those below it while one of its waits lasts."""

from __future__ import annotations

import os
from types import TracebackType

from agentctl.adapters.locks import locked
from agentctl.operations.locating import caller
from agentctl.operations.vigil import Vigil
from agentctl.supervision.dispatch import Lender, carry_out, dispatch_locked
from agentctl.supervision.slots import loan_lock, place_of


class Loan:
    """The loan of the calling worker's place, if it has one. The open descriptor is the loan.

    A worker may have several waits at once, as those of an agent that makes its calls in parallel: one of them lends,
    and when it returns the next look of another one does.
    """

    def __init__(self, vigil: Vigil) -> None:
        self._vigil = vigil
        self._me = caller()
        self._fd: int | None = None

    def lender(self) -> Lender | None:
        """Lend, if nobody does yet; return who lends."""
        me, root = self._me, self._vigil.root
        if me is None or me.task.root.path != root.root.path:
            return None
        if self._fd is None:
            place = place_of(root, me.task.id, me.instance)
            self._fd = loan_lock(root, place) if place is not None else None
            if self._fd is None:
                return None
            self._vigil.watch.add(root.slots)  # A guest's end is told before its place is free: that wakes once more.
        return Lender(me.task.id, me.instance)

    def take_back(self) -> None:
        """Get the place back before the wait returns: a guest at work moves to a free slot, if there is one."""
        if self._fd is None:
            return
        with locked(self._vigil.root.queue_lock):
            done = dispatch_locked(self._vigil.root)
        carry_out(self._vigil.root, done)

    def __enter__(self) -> Loan:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
