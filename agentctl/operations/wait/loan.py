"""A wait within a worker lends that worker's place to its descendants, and takes it back before it returns."""

from __future__ import annotations

import os

from agentctl.adapters.locks import locked
from agentctl.domain.names import WorkerId
from agentctl.operations.wait.live_view import LiveTask
from agentctl.operations.where.calling import caller
from agentctl.supervision.dispatch.dispatch import complete_dispatch, dispatch_locked
from agentctl.supervision.dispatch.slots import LOAN, lend, place_of


class Loan:
    """The loan of the calling worker's place. The open descriptor is the loan: when this process dies, no new guest
    is started in the place.

    A worker may have several waits at once, for example an agent that makes parallel calls. One of them lends; after
    it has returned, another one lends at its next look.
    """

    def __init__(self, live_task: LiveTask) -> None:
        self._live_task = live_task
        self._me = caller()
        self._fd: int | None = None

    def lender(self) -> WorkerId | None:
        """Lend the place, unless another wait of the worker does; return the lender, or None."""
        me, tree = self._me, self._live_task.tree
        if me is None or me.task.root.path != tree.root.path:
            return None
        if self._fd is None:
            if place_of(tree, me.worker.id) is None:
                return None
            with locked(tree.queue_lock):  # Whoever has it tries the locks of loans, to see which are held.
                self._fd = lend(tree, LOAN, me.worker.id)
            if self._fd is None:
                return None
            self._live_task.watch.add(tree.slots)  # A guest ends before its place is free: wake at both.
        return me.worker.id

    def take_back(self) -> None:
        """Get the lent place back before the wait returns: a guest at work moves to a free slot, if there is one."""
        if self._fd is not None:
            with locked(self._live_task.tree.queue_lock):
                done = dispatch_locked(self._live_task.tree)
            complete_dispatch(self._live_task.tree, done)

    def close(self) -> None:
        """Let no new guest into the place."""
        if self._fd is not None:
            fd, self._fd = self._fd, None
            os.close(fd)
