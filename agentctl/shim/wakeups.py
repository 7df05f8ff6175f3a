"""What ends a shim's sleep without being a file: its children's ends, and the wish that it takes no new work."""

from __future__ import annotations

import os
import signal


class Wakeups:
    """Signals as bytes on a descriptor: SIGCHLD wakes, SIGTERM and SIGHUP also say to take no new work."""

    def __init__(self) -> None:
        self.is_told_to_end = False
        self.fd, write = os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(write, False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._note)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)

    def _note(self, number: int, _frame: object) -> None:
        if number != signal.SIGCHLD:
            self.is_told_to_end = True

    def drain(self, *fds: int) -> None:
        """Empty the descriptor, and others that only wake."""
        for fd in (self.fd, *fds):
            try:
                while os.read(fd, 4096):
                    pass
            except BlockingIOError:
                pass
