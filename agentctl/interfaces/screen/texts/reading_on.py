"""Has a source grow in a thread: one pass at a time, however often it is asked for, and none once it is stopped."""

from __future__ import annotations

import contextvars
import os
import threading
import time
from collections.abc import Callable

from agentctl.adapters.files import AnyPath
from agentctl.adapters.pace import Pace
from agentctl.adapters.processes import wait_readable
from agentctl.adapters.wake_pipe import WakePipe
from agentctl.adapters.watch import Watch
from agentctl.interfaces.screen.texts.shown import text_problem
from agentctl.interfaces.screen.texts.sources import PagerSource

#: While a long text is read, it is announced so often that it grows.
_ANNOUNCED_S = 0.1
#: After a change, it waits so long for others, and then reads all of them on together.
_GATHERED_S = 0.05


class ReadingOn:
    """The passes of one source. `start` runs a function in a thread; `announce` is called there."""

    def __init__(
        self, source: PagerSource, start: Callable[[Callable[[], None]], object], announce: Callable[[], object]
    ) -> None:
        self._source, self._start, self._announce = source, start, announce
        #: Why the last pass has failed.
        self.problem: str | None = None
        self._lock = threading.Lock()
        #: Whether a pass runs.
        self.is_running = False
        self._is_wanted = self._is_stopped = False

    def ask(self) -> None:
        """Have the source grow as soon as possible."""
        with self._lock:
            self._is_wanted = True
            if self.is_running or self._is_stopped:
                return
            self.is_running = True
        self._start(self._run)

    def stop(self) -> None:
        """Do not read on, and close the source; a pass that runs finds nothing more in it, and ends."""
        self._is_stopped = True
        self._source.close()

    def _run(self) -> None:
        while self._goes_on():
            try:
                self._grow()
                self.problem = None
            except Exception as error:  # noqa: BLE001 - whatever it is, the pager says it
                self.problem = text_problem(error)
            self._announce()

    def _goes_on(self) -> bool:
        with self._lock:
            self.is_running = self._is_wanted and not self._is_stopped
            self._is_wanted = False
            return self.is_running

    def _grow(self) -> None:
        announced, pace = time.monotonic(), Pace()
        while self._source.grow() and not self._is_stopped:
            pace.keep()
            if time.monotonic() - announced > _ANNOUNCED_S:
                self._announce()
                announced = time.monotonic()


class FolderWatch:
    """A thread that calls a function when something changes in a folder of some files."""

    def __init__(self, paths: tuple[AnyPath, ...], changed: Callable[[], object]) -> None:
        self._paths, self._changed = paths, changed
        self._end = WakePipe()
        # The context says which app the messages are for.
        run = contextvars.copy_context().run
        self._thread = threading.Thread(target=run, args=(self._run,), name="agentctl folder watch", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with Watch({os.path.dirname(path) for path in self._paths}) as watch:
            while not watch.sleep(None, [self._end.fd]):
                self._changed()
                if wait_readable([self._end.fd], _GATHERED_S):
                    return

    def close(self) -> None:
        """End the thread, and wait until it has ended."""
        self._end.wake()
        self._thread.join()
        self._end.close()
