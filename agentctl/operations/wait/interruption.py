"""When a wait within a worker has to stop: the worker is being cancelled, or was paused."""

from __future__ import annotations

import os

from agentctl.adapters.eventlog import LogReader
from agentctl.adapters.watch import Watch
from agentctl.domain import events as ev
from agentctl.errors import WaitStopped
from agentctl.operations.where.calling import Caller, caller


class Stop:
    """The reasons to stop a wait; there are none outside of a worker.

    A pause stops this process too. So it is noticed when the worker is continued, by its event in the log.
    """

    def __init__(self, watch: Watch) -> None:
        me = caller()
        self._me = me if me is not None and me.worker.spec.exists() else None
        if self._me is not None:
            watch.add(self._me.worker.path, names_only=True)
            self._log = LogReader(self._me.task.events)
            self._log.offset = os.path.getsize(self._me.task.events)

    def check(self) -> None:
        """Raise `WaitStopped` if the waiting worker was cancelled or paused."""
        me = self._me
        if me is None:
            return
        if me.worker.cancel.exists() or me.worker.has_ended:
            raise WaitStopped(f"{me.instance} is being cancelled: it stops waiting", me.instance, "cancelled")
        if me.worker.pause.exists() or self._was_paused(me):
            message = f"{me.instance} was paused: it stops waiting"
            raise WaitStopped(message, me.instance, "paused", hint="the workers below it go on too; wait again")

    def _was_paused(self, me: Caller) -> bool:
        new = list(self._log.events())  # Read to the end: the reader continues from there.
        return any(event["type"] == ev.PAUSED and event.get("agentInstance") == me.instance for event in new)
