"""Signals that wake a shim: the end of a child (SIGCHLD), and the request to take no new work (SIGTERM, SIGHUP)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

from agentctl.adapters import locks
from agentctl.adapters.clock import monotonic
from agentctl.adapters.processes import wait_readable
from agentctl.adapters.signals import signal

#: These must not end or stop a shim. Handled, not ignored: a worker would inherit an ignored signal across exec.
_DISREGARDED = (signal.SIGINT, signal.SIGTSTP, signal.SIGPIPE, signal.SIGXFSZ)
_MOST_BYTES = 4096


class Wakeups:
    """Signals as bytes on a descriptor: SIGCHLD wakes, SIGTERM and SIGHUP also say to take no new work."""

    def __init__(self) -> None:
        self.is_told_to_end = False
        self.fd, write = os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(write, False)
        for number in (signal.SIGCHLD, *_DISREGARDED):
            signal.signal(number, _wake)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._note_end)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        locks.no_stop_comes()

    def _note_end(self, _number: int, _frame: object) -> None:
        self.is_told_to_end = True

    def rest(self, seconds: float, control: int | None = None, watched: Sequence[int] = ()) -> list[int]:
        """Sleep for `seconds`, or until woken; return the descriptors that woke.

        Args:
            control: A FIFO whose bytes only wake: they are read and dropped.
            watched: Other descriptors that wake.
        """
        emptied = [self.fd] if control is None else [self.fd, control]
        readable = wait_readable([*emptied, *watched], seconds)
        for fd in emptied:
            if fd in readable:
                with contextlib.suppress(BlockingIOError):
                    os.read(fd, _MOST_BYTES)
        return readable

    def pause(self, seconds: float) -> None:
        """Sleep for all of `seconds`, whatever wakes, unless this shim is told to end.

        A rest before another try is cut short by the child of the last one, which has just ended.
        """
        until = monotonic() + seconds
        while (left := until - monotonic()) > 0 and not self.is_told_to_end:
            self.rest(left)


def _wake(_number: int, _frame: object) -> None:
    """Do nothing but interrupt a sleep."""
