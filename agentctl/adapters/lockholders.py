"""Which processes hold a kernel lock (flock) on a file of another program, as /proc tells it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator

from agentctl.adapters.opening import open_plain
from agentctl.lean import NamedTuple

_LONGEST = 200


class LockHolder(NamedTuple):
    """A process that holds a lock."""

    pid: int
    #: The start of its command line.
    command: str


def lock_holders(path: str) -> list[LockHolder] | None:
    """Return who holds the lock on a file, as far as that can be seen; None if nobody does, or it cannot be asked."""
    try:
        fd = open_plain(path)
    except OSError:
        return None
    try:
        # For a moment: a program that tries at just that time is refused, and tries again.
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return [*_with_lock_on(os.path.realpath(path))]
    except OSError:
        return None
    else:
        return None
    finally:
        os.close(fd)


def _with_lock_on(path: str) -> Iterator[LockHolder]:
    own = str(os.getpid())
    for pid in sorted(filter(str.isdecimal, _names_in("/proc")), key=int):
        if pid != own and any(_is_locked(pid, fd, path) for fd in _names_in(f"/proc/{pid}/fd")):
            yield LockHolder(int(pid), _command(pid))


def _is_locked(pid: str, fd: str, path: str) -> bool:
    try:
        return os.readlink(f"/proc/{pid}/fd/{fd}") == path and "FLOCK" in _text(f"/proc/{pid}/fdinfo/{fd}")
    except OSError:
        return False


def _command(pid: str) -> str:
    try:
        return _text(f"/proc/{pid}/cmdline").replace("\0", " ").strip()[:_LONGEST]
    except OSError:
        return ""


def _text(path: str) -> str:
    with open(path, "rb") as file:
        return file.read(1 << 16).decode(errors="replace")


def _names_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
