"""The rounds of a wait: what it does between two looks, in the only order that loses nothing.

1. Look (`LiveTree.update`), and decide. If enough is seen, the wait ends: `give_back`, then return.
2. `serve`: stop the wait if its worker is being cancelled or was paused. This comes after the look, so that an end that
   is already there is still given out. Then start the workers that may start, also in the lent place: a wait must not
   hold up all other workers.
3. `sleep`, for at most the time that is left. The watch was set up before the look (`LiveTree`), so a change between
   the two wakes it at once.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from agentctl.adapters.clock import monotonic
from agentctl.adapters.eventlog import LogReader
from agentctl.adapters.watch import Watch
from agentctl.domain import events as ev
from agentctl.domain.names import WorkerId
from agentctl.errors import AgentctlError, BrokenOff, WaitStopped
from agentctl.lean import NamedTuple
from agentctl.operations.wait.live_view import DiskRefusal, LiveTree
from agentctl.operations.wait.loan import Loan
from agentctl.operations.where.calling import Caller, caller
from agentctl.operations.where.personal_config import may_be_told
from agentctl.supervision.worker import cancel_request, pause_request

if TYPE_CHECKING:
    from agentctl.operations.notify.senders import Senders

#: How often a wait looks for what is to be told.
_NOTICES_S = 1.0
#: Called periodically with the workers that nobody starts.
OnStranded = Callable[[list[WorkerId]], None]
#: Called periodically with the workers of which a disk refuses to take an end, or to give the files.
OnRefused = Callable[[Mapping[WorkerId, DiskRefusal]], None]
OnHeld = Callable[[Sequence[str]], None]


class WakeReasons(NamedTuple):
    """What ends a sleep of a wait beside the workers."""

    #: Descriptors that become readable.
    fds: Collection[int] = ()
    #: The time until something else is to be done.
    within_s: float | None = None


_NOTHING = WakeReasons()

_broken: ContextVar[int | None] = ContextVar("broken", default=None)


@contextlib.contextmanager
def ending_with(broken: int) -> Iterator[None]:
    """Have the waits within the block end with `BrokenOff` once a descriptor becomes readable: nobody waits by then."""
    token = _broken.set(broken)
    try:
        yield
    finally:
        _broken.reset(token)


class WaitRounds:
    """The rounds of a wait. Within a worker, that worker's place is lent meanwhile.

    Args:
        timeout_s: None waits without a limit.
        broken: A descriptor that becomes readable when nobody wants the answer any more.
        turn: Held while the queue is run, if several threads wait.
        on_stranded: Called with the workers that stay in the queue for ever, if there are any.
        on_refused: Called with the workers of which a disk refuses something, if there are any.
        on_held: Called with what keeps workers in the queue until somebody lets them go, in words, if anything does.
    """

    def __init__(
        self,
        live_tree: LiveTree,
        timeout_s: float | None = None,
        *,
        broken: int | None = None,
        turn: AbstractContextManager[object] | None = None,
        on_stranded: OnStranded | None = None,
        on_refused: OnRefused | None = None,
        on_held: OnHeld | None = None,
    ) -> None:
        self._live_tree, self._broken = live_tree, _broken.get() if broken is None else broken
        self._turn, self._on_stranded = turn or contextlib.nullcontext(), on_stranded
        self._on_refused, self._on_held = on_refused, on_held
        self._deadline = None if timeout_s is None else monotonic() + timeout_s
        self._loan, self._stop = Loan(live_tree.top), _Interruption(live_tree.watch)
        self._notices = _Notices(live_tree)

    def left_s(self) -> float | None:
        """Return how much time is left; None without a limit."""
        return None if self._deadline is None else self._deadline - monotonic()

    def serve(self) -> None:
        """Start the workers that may start.

        Raises:
            WaitStopped: The worker that waits was cancelled or paused.
        """
        self._stop.check()
        self._notices.see_to()
        with self._turn:
            self._live_tree.run_queue(self._loan.lender())
        if self._on_stranded is not None and (stranded := self._live_tree.stranded()):
            self._on_stranded(stranded)
        if self._on_refused is not None and (refused := self._live_tree.refused()):
            self._on_refused(refused)
        if self._on_held is not None and (holds := self._live_tree.holds()):
            self._on_held(holds)

    def sleep(self, wakes: WakeReasons = _NOTHING) -> None:
        """Sleep until something may have changed, or the time is over.

        Raises:
            BrokenOff: Nobody wants the answer any more.
        """
        limit = min((one for one in (self.left_s(), wakes.within_s) if one is not None), default=None)
        broken = [] if self._broken is None else [self._broken]
        if self._broken in self._live_tree.sleep(limit, [*broken, *wakes.fds]):
            raise BrokenOff("the call was aborted; no worker was stopped")

    def next(self, wakes: WakeReasons = _NOTHING) -> bool:
        """Serve and sleep; return False, without sleeping, when the time is over."""
        self.serve()
        left = self.left_s()
        if left is not None and left <= 0:
            return False
        self.sleep(wakes)
        return True

    def give_back(self) -> None:
        """Take the lent place back before the wait returns."""
        self._notices.see_to(is_last=True)
        self._loan.take_back()

    def close(self) -> None:
        """Let no new guest into the lent place."""
        self._loan.close()

    def __enter__(self) -> WaitRounds:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Interruption:
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
        if cancel_request.is_asked(me.worker) or me.worker.has_ended:
            raise WaitStopped(f"{me.instance} is being cancelled: it stops waiting", me.instance, "cancelled")
        if pause_request.is_wanted(me.worker) or self._was_paused(me):
            message = f"{me.instance} was paused: it stops waiting"
            raise WaitStopped(message, me.instance, "paused", hint="the workers below it go on too; wait again")

    def _was_paused(self, me: Caller) -> bool:
        new = list(self._log.events())  # Read to the end: the reader continues from there.
        return any(event["type"] == ev.PAUSED and event.get("agentInstance") == me.instance for event in new)


class _Notices:
    """Has the person told of what no shim can tell any more, while a command of theirs waits."""

    def __init__(self, live_tree: LiveTree) -> None:
        self._live_tree, self._next_s = live_tree, 0.0
        self._senders: Senders | None = None
        tree = live_tree.top.tree
        if caller() is None and may_be_told(tree):
            from agentctl.operations.notify.senders import Senders

            with contextlib.suppress(AgentctlError, OSError):  # No place in memory: then there is no switch either.
                self._senders = Senders(tree)

    def see_to(self, *, is_last: bool = False) -> None:
        """Have a sender started if there may be something to tell; at most once a second, and at the end."""
        if self._senders is not None and (is_last or monotonic() >= self._next_s):
            self._next_s = monotonic() + _NOTICES_S
            self._senders.look(self._live_tree.tasks())
