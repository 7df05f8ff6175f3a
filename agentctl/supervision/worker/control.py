"""A worker's guardian: who it is, and how it is woken. A durable file says what is wanted, a byte in a FIFO wakes."""

from __future__ import annotations

import errno
import os
import stat

from agentctl.adapters import processes
from agentctl.adapters.files import set_aside, storage_errors, write_in_place
from agentctl.adapters.signals import signal
from agentctl.adapters.taskdir import WorkerDir

#: Wakes what stands in at the head for a worker on a node. A process that has no handler for it yet ignores it.
WAKE = signal.SIGURG


def poke(worker: WorkerDir) -> bool:
    """Wake the shim of a worker; return False if there is none (a FIFO without a reader refuses with ENXIO)."""
    try:
        fd = _open_fifo(worker, os.O_WRONLY)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENOENT):
            return False
        raise
    if fd is None:
        return False
    try:
        os.write(fd, b"!")
    except BrokenPipeError:  # It ended between the open and the write.
        return False
    except BlockingIOError:
        pass  # The FIFO is full of wake-ups that were not yet read.
    finally:
        os.close(fd)
    return True


def open_to_wake(worker: WorkerDir) -> int | None:
    """Open the FIFO that wakes a shim, without waking it; None if the file is not a FIFO."""
    return _open_fifo(worker, os.O_WRONLY)


def open_control(worker: WorkerDir) -> int:
    """Open the FIFO of a worker for its shim; it is made if missing, and anything else in its place is set aside.

    For reading and writing: a FIFO whose last writer leaves would be at end of file, and wake for ever.
    """
    with storage_errors(worker.control, "make"):
        try:
            fd = _open_fifo(worker, os.O_RDWR)
        except FileNotFoundError:
            pass
        else:
            if fd is not None:
                return fd
            set_aside(worker.control)
        os.mkfifo(worker.control, 0o600)
        return os.open(worker.control, os.O_RDWR | _FIFO)


#: A worker may have replaced the FIFO: a byte must not be written to what a link leads to.
_FIFO = os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


def _open_fifo(worker: WorkerDir, flags: int) -> int | None:
    """Open the FIFO that wakes a shim; None if the file is not a FIFO."""
    try:
        fd = os.open(worker.control, flags | _FIFO)
    except OSError as error:
        # Opened for both ends, a FIFO never gives ENXIO, so this is a socket.
        if error.errno in (errno.ELOOP, errno.EISDIR) or (error.errno == errno.ENXIO and flags == os.O_RDWR):
            return None
        raise
    if stat.S_ISFIFO(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    return None


def name_holder(lock: int, me: processes.Identity | None) -> None:
    """Write a guardian's identity into the file that it has locked: in place, since the lock is on the file."""
    write_in_place(lock, processes.identity_text(me) + b"\n" if me else b"{}\n")
