"""A worker's guardian: who it is, and how it is woken. A durable file says what is wanted, a byte in a FIFO wakes."""

from __future__ import annotations

import errno
import os
import signal

from agentctl.adapters import processes
from agentctl.adapters.files import read_quietly, write_in_place
from agentctl.adapters.taskdir import AgentDir


def poke(agent: AgentDir) -> bool:
    """Wake the shim of a worker; False where there is none (a FIFO without a reader refuses with ENXIO)."""
    try:
        fd = os.open(agent.control, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENOENT):
            return False
        raise
    try:
        os.write(fd, b"!")
    except BlockingIOError:
        pass  # It is full of wakes that were not yet read.
    finally:
        os.close(fd)
    return True


def name_holder(lock: int, me: processes.Identity | None) -> None:
    """Write who guards into the shim.json that it holds: in place, since the lock is on the file."""
    write_in_place(lock, processes.text_of(me) + b"\n" if me else b"{}\n")


def wake_stopped(agent: AgentDir) -> None:
    """Continue a shim that somebody stopped: it could not act on a cancel."""
    shim = processes.identity_from(read_quietly(agent.shim))
    stat = processes.read_stat(shim.pid) if shim else None
    if shim is not None and stat is not None and stat.state in "Tt":
        processes.send(shim, signal.SIGCONT)
