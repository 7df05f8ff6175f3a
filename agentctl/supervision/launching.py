"""Starting a shim: detached, with a held place, an empty environment and a clean interpreter.

The order (see `handshake`) is written after the queue's lock is given back.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys

from agentctl.adapters import processes
from agentctl.adapters.files import write_all
from agentctl.adapters.taskdir import TaskDir
from agentctl.lean import Any, NamedTuple
from agentctl.supervision import failpoints
from agentctl.supervision.handshake import ANSWER_FD, ORDER_FD, PLACE_FD
from agentctl.supervision.places import Occupant, Place
from agentctl.supervision.tickets import Ticket
from agentctl.supervision.tree import SHIM_SCRIPT

#: Above these three, so that none of them is overwritten while it is still to be copied.
_SPARE_FD = 10


class Launch(NamedTuple):
    """A shim on its way."""

    ticket: Ticket
    shim_pid: int
    order_fd: int
    answer_fd: int


def launch(root: TaskDir, ticket: Ticket, place: Place) -> Launch:
    """Start a shim for `ticket` in `place` and let go of the place (the caller holds the queue's lock)."""
    place.occupy(Occupant(ticket.task_id, ticket.instance))
    order_read, order_write = _high_pipe()
    answer_read, answer_write = _high_pipe()
    place_fd = fcntl.fcntl(place.fd, fcntl.F_DUPFD_CLOEXEC, _SPARE_FD)
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    copies = ((null, 0), (null, 1), (null, 2), (order_read, ORDER_FD), (answer_write, ANSWER_FD), (place_fd, PLACE_FD))
    argv = [sys.executable, "-I", "-S", SHIM_SCRIPT, str(root.path)]
    try:
        pid = os.posix_spawn(
            sys.executable, argv, {}, setsid=True,
            file_actions=[(os.POSIX_SPAWN_DUP2, source, target) for source, target in copies],
            setsigmask=[], setsigdef=_ordinary_signals(),
        )  # fmt: skip
        identity = processes.identify(pid)
        place.occupy(Occupant(ticket.task_id, ticket.instance, identity))
    except BaseException:
        os.close(order_write)  # A shim that is there by now meets the end of its order, and leaves.
        os.close(answer_read)
        raise
    finally:
        for fd in (order_read, answer_write, place_fd, null, place.fd):
            os.close(fd)
    failpoints.reached("dispatch.after-launch")
    return Launch(ticket, pid, order_write, answer_read)


def _high_pipe() -> tuple[int, int]:
    ends = []
    for fd in os.pipe():
        ends.append(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _SPARE_FD))
        os.close(fd)
    return ends[0], ends[1]


def _ordinary_signals() -> list[int]:
    """Return the signals that the caller may ignore and a worker must not: a shell's `&` ignores two of them."""
    import signal

    return sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})


def hand_over(launched: Launch, root: TaskDir, blob: bytes | None, folder: str) -> None:
    """Give a shim its order: which worker, and its environment or the folder where that waits.

    Blocks until the shim has read it; no lock may be held.
    """
    order = {
        "root": str(root.path),
        "ticket": launched.ticket,
        "environmentFolder": folder,
        "hasEnvironment": blob is not None,
        "failpoint": failpoints.armed(),
    }
    with contextlib.suppress(BrokenPipeError):  # The shim died: its missing answer tells.
        write_all(launched.order_fd, json.dumps(order).encode() + b"\n" + (blob or b""))
    os.close(launched.order_fd)


def await_answer(launched: Launch) -> dict[str, Any]:
    """Return what the shim answers once its worker runs or could not be started; {} where it died first."""
    data = b""
    try:
        while chunk := os.read(launched.answer_fd, 1 << 16):
            data += chunk
    finally:
        os.close(launched.answer_fd)
    try:
        answer = json.loads(data)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}
