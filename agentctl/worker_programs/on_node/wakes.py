"""What wakes a stand-in: signals, and its own threads; and whether a signal has asked it to end."""

from __future__ import annotations

import contextlib
import os
import signal

from agentctl.adapters.processes import wait_readable
from agentctl.supervision.worker.control import WAKE

_MOST_BYTES = 4096


class Wakes:
    """The signals of this process as bytes on a descriptor.

    Attributes:
        woken: Is readable once this process is to wake.
        wakes: Whoever writes a byte to it wakes this process.
        is_asked_to_end: SIGINT or SIGTERM has come.
    """

    def __init__(self) -> None:
        self.woken, self.wakes = os.pipe()
        for fd in (self.woken, self.wakes):
            os.set_blocking(fd, False)
        self.is_asked_to_end = False
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._note)
        for number in (signal.SIGCHLD, WAKE):
            signal.signal(number, lambda _number, _frame: None)
        signal.set_wakeup_fd(self.wakes, warn_on_full_buffer=False)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))  # Its shim has blocked them.

    def _note(self, number: int, _frame: object) -> None:
        self.is_asked_to_end = self.is_asked_to_end or number != signal.SIGHUP

    def wait(self, at_most_s: float) -> None:
        """Sleep until this process is to wake, or time is up."""
        wait_readable([self.woken], at_most_s)

    def clear(self) -> None:
        """Forget what has woken this process so far."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.woken, _MOST_BYTES)
