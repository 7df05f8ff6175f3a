"""Ends the sleep of another thread, by a byte in a pipe that it watches while it sleeps."""

from __future__ import annotations

import contextlib
import os

_MOST_BYTES = 4096


class WakePipe:
    """`fd` is readable from a `wake` to the next `drain`; a wake-up may be doubled without harm."""

    def __init__(self) -> None:
        self.fd, self._writing = os.pipe()  # Not `pipe2`: macOS has none.
        for fd in (self.fd, self._writing):
            os.set_blocking(fd, False)

    def wake(self) -> None:
        """Have `fd` become readable."""
        with contextlib.suppress(OSError):  # The pipe is full, so it wakes anyway; or closed meanwhile.
            os.write(self._writing, b"!")

    def drain(self) -> None:
        """Take the wake-ups that have come."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.fd, _MOST_BYTES)

    def close(self) -> None:
        """Close both ends; their numbers may be those of other files from then on."""
        os.close(self._writing)
        os.close(self.fd)

    def __enter__(self) -> WakePipe:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
