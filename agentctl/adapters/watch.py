"""Sleeps until a file or folder changes, a process ends, or time is up.

Register first, then read, then sleep: a change in between ends the sleep at once. Where the system has no inotify, or
no instance of it is left (128 a user), the sleep is cut into slices of 250 ms, and each slice counts as a change.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import time
from collections.abc import Iterable
from types import TracebackType

from agentctl.adapters.files import AnyPath
from agentctl.adapters.processes import wait_readable

SLICE_S = 0.25
#: Everything is looked at at least this often, whatever the system reports: over NFS it reports nothing.
SAFETY_S = 2.0

# inotify(7): the events of a growing log, of a file that is renamed in, and of one that is removed.
_IN_MODIFY, _IN_MOVED_TO, _IN_CREATE, _IN_DELETE = 0x2, 0x80, 0x100, 0x200
_MASK = _IN_MODIFY | _IN_MOVED_TO | _IN_CREATE | _IN_DELETE

#: Instances without marks, for the next watches. A process that waits again and again has mostly one watch at a time,
#: and a user has 128 instances for all of their processes.
_spare: list[int] = []
_MOST_SPARE = 1


def _forget_spare() -> None:
    """Close the spare instances in a forked child, which shares them with its parent."""
    while _spare:
        os.close(_spare.pop())


os.register_at_fork(after_in_child=_forget_spare)


class Watch:
    """Watches files and folders; also a context manager."""

    def __init__(self, paths: Iterable[AnyPath] = ()) -> None:
        self._libc: ctypes.CDLL | None = None
        self.fd = self._open()
        #: How often each was asked for: inotify has one for a file, whoever adds it.
        self._marks: dict[int, int] = {}
        self._is_whole = self.fd is not None
        for path in paths:
            self.add(path)

    def _open(self) -> int | None:
        if sys.platform != "linux":
            return None
        self._libc = ctypes.CDLL(None, use_errno=True)
        with contextlib.suppress(IndexError):
            return _spare.pop()
        fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        return fd if fd >= 0 else None

    def add(self, path: AnyPath, *, names_only: bool = False) -> int | None:
        """Watch one more file or folder and return its mark; where that is refused, sleeps are cut into slices.

        Args:
            names_only: Of a folder, only that names come and go, not that files in it grow.
        """
        if self.fd is None or self._libc is None:
            return None
        mask = _MASK & ~_IN_MODIFY if names_only else _MASK
        mark: int = self._libc.inotify_add_watch(self.fd, os.fsencode(path), mask)
        if mark < 0:
            self._is_whole = False
            return None
        self._marks[mark] = self._marks.get(mark, 0) + 1
        return mark

    def remove(self, mark: int) -> None:
        """Give a mark back; what nobody has a mark for any more is not watched any more."""
        if self._libc is None or mark not in self._marks:
            return
        self._marks[mark] -= 1
        if not self._marks[mark]:
            del self._marks[mark]
            self._libc.inotify_rm_watch(self.fd, mark)

    @property
    def longest_s(self) -> float:
        """How long a sleep may be at most: a slice where not all changes are reported."""
        return SAFETY_S if self._is_whole else SLICE_S

    def sleep(self, timeout_s: float | None, fds: Iterable[int] = ()) -> list[int]:
        """Sleep until a change, a readable one of `fds`, or `timeout_s`; return the readable fds.

        May return early, and returns after `SAFETY_S` at the latest.
        """
        limit = self.longest_s if timeout_s is None else max(0.0, min(self.longest_s, timeout_s))
        own = [] if self.fd is None else [self.fd]
        if not own and not fds:
            time.sleep(limit)
            return []
        readable = wait_readable([*own, *fds], limit)
        self.drain()
        return [fd for fd in readable if fd != self.fd]

    def drain(self) -> None:
        """Discard the changes that were reported so far."""
        if self.fd is not None:
            with contextlib.suppress(BlockingIOError):
                while os.read(self.fd, 65536):
                    pass

    def close(self) -> None:
        """Remove the marks, and leave the instance to the next watch, or to the end of the process.

        Linux takes 8 to 24 ms (measured with 6.18) to close an instance, or to end a process that has marks: it waits
        for their possible readers. No thread closes it meanwhile: CPython (seen with 3.11.2) may crash at its end
        while a thread comes back from a system call.
        """
        if self.fd is None or self._libc is None:
            return
        for mark in self._marks:
            self._libc.inotify_rm_watch(self.fd, mark)
        self._marks.clear()
        self.drain()
        fd, self.fd = self.fd, None
        if len(_spare) < _MOST_SPARE:
            _spare.append(fd)
        else:
            os.close(fd)

    def __enter__(self) -> Watch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
