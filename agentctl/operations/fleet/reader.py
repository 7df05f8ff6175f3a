"""The thread that reads: it looks at the fleet whenever something has changed, and hands what it saw to a surface."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from agentctl.adapters.clock import monotonic
from agentctl.adapters.pace import Pace
from agentctl.adapters.taskdir import Root
from agentctl.adapters.wake_pipe import WakePipe
from agentctl.domain.names import WorkerId
from agentctl.operations.fleet.fleet import Fleet
from agentctl.operations.fleet.glance import Glance
from agentctl.operations.fleet.seen import SeenEnds

_PAUSE_S = 0.08
_READING_PAUSE_S = 0.25


class Reader:
    """Looks at a fleet in a thread of its own.

    Args:
        show: Called in that thread with each new glance; it must not block.
        fail: Called in that thread with what a look or another of these functions has raised.
        beside: Called in that thread after each look, whether or not it found anything.
        before: Called in that thread before each look.
        pause_s: Events that come faster are shown together. The first one of a burst is shown at once, and so is what
            there is at a call of `wake`.
        again_s: So long after a failure it reads anew: a disk recovers, an upgrade ends. None: the thread ends with it.
    """

    def __init__(
        self,
        root: Root,
        show: Callable[[Glance], object],
        fail: Callable[[BaseException], object],
        beside: Callable[[Glance], object] = lambda _: None,
        *,
        before: Callable[[], object] = lambda: None,
        pause_s: float = _PAUSE_S,
        again_s: float | None = None,
    ) -> None:
        self._root = root
        self._show = show
        self._fail = fail
        self._beside = beside
        self._before = before
        self._pause_s = pause_s
        self._again_s = again_s
        self._wanted: Mapping[WorkerId, bool] = {}
        self._over = threading.Event()
        #: Somebody waits for the next look: it is not put off.
        self._is_urgent = threading.Event()
        #: A byte in it ends the sleep.
        self._pipe = WakePipe()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="reader", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def want(self, wanted: Mapping[WorkerId, bool]) -> None:
        """Say of which workers the activity is to be read: True of one means everything that it did."""
        if wanted != self._wanted:
            self._wanted = wanted
            self.wake()

    def wake(self) -> None:
        """Look at once."""
        self._is_urgent.set()
        if not self._is_closed:  # The number of its pipe may be that of another file by now.
            self._pipe.wake()

    def close(self, timeout_s: float | None = None) -> None:
        """Stop reading; returns when the thread has ended.

        Args:
            timeout_s: Wait no longer for it: it ends by itself after its look, and keeps its pipe.
        """
        if self._is_closed:
            return
        self._over.set()
        self.wake()
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        if not self._thread.is_alive():
            self._is_closed = True
            self._pipe.close()

    def _run(self) -> None:
        self._try_to_read()
        while self._again_s is not None and not self._over.wait(self._again_s):
            self._try_to_read()

    def _try_to_read(self) -> None:
        try:
            with Fleet(self._root, SeenEnds(self._root), rest=Pace().keep) as fleet:
                self._read(fleet)
        except BaseException as error:  # noqa: BLE001 - the surface reports it
            self._fail(error)

    def _read(self, fleet: Fleet) -> None:
        shown: Glance | None = None
        shown_at = 0.0
        while not self._over.is_set():
            self._is_urgent.clear()
            fleet.want(self._wanted)
            self._before()
            glance = fleet.look()
            # While much is still to be read, whoever shows it is not to take the processor from the reader.
            if glance is not shown and (not fleet.has_more_to_read or monotonic() >= shown_at + _READING_PAUSE_S):
                self._show(glance)
                shown, shown_at = glance, monotonic()
            self._beside(glance)
            fleet.sleep(None, [self._pipe.fd])
            self._pipe.drain()
            if not fleet.has_more_to_read:
                self._is_urgent.wait(shown_at + self._pause_s - monotonic())
