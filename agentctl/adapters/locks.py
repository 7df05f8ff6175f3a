"""Kernel locks: nothing of them is left when their holder dies.

Mutual exclusion uses `flock`. Liveness ("does its shim live?") uses an OFD lock, because that can be queried without
taking it (a prober with flock made 775 of 5,000 acquisitions fail). The two do not see each other: no file has both,
but for a liveness lock on a disk that takes no writes (`hold_alive`).

Locking order: root < keys < task < queue < slot < instance < log.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import sys
import time
from contextlib import suppress

from agentctl.adapters.files import storage_errors
from agentctl.adapters.opening import OddFile, open_plain
from agentctl.adapters.signals import signal
from agentctl.errors import LockTimeout
from agentctl.world_errors import next_step

LOCK_LIMIT_S = 20.0
_FIRST_PAUSE_S = 0.0003
_LONGEST_PAUSE_S = 0.02
_OPEN = os.O_RDWR | os.O_CREAT


#: Whether SIGTSTP stops this process, unless it is blocked.
_can_be_stopped = True


def no_stop_comes() -> None:
    """Declare that this process permanently has a handler for SIGTSTP, so that no lock has to block the signal."""
    global _can_be_stopped  # noqa: PLW0603 - it is true of the whole process
    _can_be_stopped = False


class locked:  # noqa: N801 - it is used as a function
    """Hold the lock of a file (created if missing), or of a folder (`FOLDER/`); `with` gives its descriptor.

    SIGTSTP is blocked meanwhile: a Ctrl-Z would freeze every shim that needs the lock.

    Args:
        is_written: False opens a file that is there for reading only, as on a read-only disk.

    Raises:
        LockTimeout: It was not free within `limit_s`; the message names the holder.
    """

    __slots__ = ("_fd", "_is_written", "_limit_s", "_mask", "_path")

    def __init__(self, path: str | os.PathLike[str], *, limit_s: float = LOCK_LIMIT_S, is_written: bool = True) -> None:
        self._path, self._limit_s, self._is_written = path, limit_s, is_written

    def __enter__(self) -> int:
        """Take it."""
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTSTP,)) if _can_be_stopped else None
        try:
            self._fd = _acquire(self._path, self._limit_s, self._is_written)
        except BaseException:
            self._unmask()
            raise
        return self._fd

    def __exit__(self, *_: object) -> None:
        """Release it."""
        try:
            os.close(self._fd)
        finally:
            self._unmask()

    def _unmask(self) -> None:
        if self._mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)


def _acquire(path: str | os.PathLike[str], limit_s: float, is_written: bool) -> int:
    deadline = time.monotonic() + limit_s
    pause = _FIRST_PAUSE_S
    while True:
        fd = try_lock(path, is_written=is_written)
        if fd is not None:
            return fd
        if time.monotonic() >= deadline:
            pid = _holder_of(path)
            raise LockTimeout(f"{path} is still locked after {limit_s:g} s, by {_in_words(pid)}", hint=_way_on(pid))
        time.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE_S)


def try_lock(path: str | os.PathLike[str], *, is_written: bool = True) -> int | None:
    """Return a descriptor that holds the lock of the file now at `path`; None while it is held, also by
    another descriptor of this process (flock(2)).
    """
    while True:
        try:
            fd = _open(path, is_written)
        except OSError:
            with storage_errors(path, "open the lock"):
                raise
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_same_file(fd, path):
                return fd
        except BlockingIOError:
            os.close(fd)
            return None
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)  # It was renamed or removed between open and lock: this lock guards nothing.


def _open(path: str | os.PathLike[str], is_written: bool) -> int:
    if os.fspath(path).endswith("/"):  # A folder is its own lock; where it is gone, no file of its name is made.
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    if not is_written:
        with suppress(FileNotFoundError):
            return open_plain(path, os.O_RDONLY)
    return open_plain(path, _OPEN)


def _is_same_file(fd: int, path: str | os.PathLike[str]) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


def _holder_of(path: str | os.PathLike[str]) -> int | None:
    """Return the pid of the holder of a flock, from /proc/locks (proc(5)); None where that is unknown."""
    try:
        inode = f":{os.stat(path).st_ino} "
        with open("/proc/locks", encoding="ascii") as rows:
            pids = [int(row.split()[4]) for row in rows if " FLOCK " in row and inode in row and "->" not in row]
    except (OSError, ValueError):
        return None
    return pids[0] if pids and pids[0] > 0 else None


def _in_words(pid: int | None) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return f"pid {pid} ({file.read().replace(bytes(1), b' ').decode(errors='replace').strip()[:120]})"
    except OSError:
        return "an unknown process"


def _way_on(pid: int | None) -> str | None:
    """Return how a holder that is stopped goes on; of any other, only it can release the lock."""
    from agentctl.adapters.processes import read_stat  # Only where a lock was waited for in vain.

    stat = read_stat(pid) if pid is not None else None
    return f"kill -CONT {pid} continues it: it is stopped" if stat is not None and stat.state in "Tt" else None


# struct flock: l_type, l_whence, l_start, l_len, l_pid (fcntl(2)); macOS has the fields in another order.
_LINUX = sys.platform == "linux"
_FLOCK = struct.Struct("hhqqi0q" if _LINUX else "qqihh")
_SET, _GET = (fcntl.F_OFD_SETLK, fcntl.F_OFD_GETLK) if _LINUX else (fcntl.F_SETLK, fcntl.F_GETLK)


def _request(kind: int) -> bytes:
    return _FLOCK.pack(kind, os.SEEK_SET, 0, 0, 0) if _LINUX else _FLOCK.pack(0, 0, 0, kind, os.SEEK_SET)


def hold_alive(path: str | os.PathLike[str]) -> int | None:
    """Take the liveness lock of a file for as long as the returned descriptor is open; None where it is held.

    A disk that opens no file for writing still gives a shared one, which keeps the exclusive one away and is seen as
    well; that only one process has it, flock(2) ensures.
    """
    fd, kind = _open_to_live(path)
    try:
        if kind == fcntl.F_RDLCK:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.fcntl(fd, _SET, _request(kind))
    except OSError as error:
        os.close(fd)
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return None
        raise
    return fd


def _open_to_live(path: str | os.PathLike[str]) -> tuple[int, int]:
    """Return a descriptor of a file and the kind of lock that it can take."""
    try:
        return open_plain(path, _OPEN), fcntl.F_WRLCK
    except OSError as error:
        if isinstance(error, FileNotFoundError | PermissionError) or next_step(error) is None:
            raise
        try:
            return open_plain(path, os.O_RDONLY), fcntl.F_RDLCK
        except FileNotFoundError:
            raise error from None  # It is the disk that does not let it be made.


def is_alive_held(path: str | os.PathLike[str]) -> bool:
    """Return whether a process holds the liveness lock, without touching it (5 us); an odd file has no holder."""
    try:
        fd = open_plain(path)
    except (FileNotFoundError, NotADirectoryError, OddFile):
        return False
    try:
        return is_held_elsewhere(fd)
    finally:
        os.close(fd)


def is_held_elsewhere(fd: int) -> bool:
    """Return whether the liveness lock of an open file is held through another descriptor.

    On Linux also through one of this process (fcntl(2), open file description locks).
    """
    fields = _FLOCK.unpack(fcntl.fcntl(fd, _GET, _request(fcntl.F_WRLCK)))
    held: bool = fields[0 if _LINUX else 3] != fcntl.F_UNLCK
    return held
