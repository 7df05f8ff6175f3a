"""The protocol between a launcher and a shim: the descriptors of a shim, and both sides of the order.

Descriptor 3 of a shim is a socket. Messages of one byte each carry descriptors. Two descriptors ask for a twin of the
shim, and become the twin's own 3 and 4; any number of twins may be asked for. A single descriptor is the place. Then
comes the order: one line of JSON, the worker's environment, the end of file. If the end comes before the order is
whole, the launcher died or has no work, and nothing is started. Descriptor 4 takes the answer, one line: started, or
the error.
"""

from __future__ import annotations

import _socket
import contextlib
import json
import os
import struct
from collections.abc import Sequence

from agentctl.lean import Any

ORDER_FD, ANSWER_FD = 3, 4

#: `socket` itself costs a shim 5 ms and 1 MB, and what it adds is not needed here.
Channel = _socket.socket
_HERE = b"h"
_INT = struct.calcsize("i")
_MOST_FDS = 2
# Linux sets close-on-exec as it receives, so that no process started in between inherits the place.
_RECEIVE_FLAGS = getattr(_socket, "MSG_CMSG_CLOEXEC", 0)
#: A shim gets ready in 40 ms; one that somebody has stopped must not hold up its launcher.
_TWIN_LIMIT_S = 5.0


def channel() -> tuple[Channel, Channel]:
    """Return both ends of a new channel; neither is inherited across exec."""
    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM, 0)
    return ours, theirs


def channel_at(fd: int) -> Channel:
    """Return the channel that a descriptor is an end of."""
    return _socket.socket(fileno=fd)


def send_fds(to: Channel, *fds: int) -> None:
    """Send descriptors. Their locks stay held on the way, and become free if nobody receives them (unix(7)).

    Raises:
        OSError: The shim is gone.
    """
    to.sendmsg([_HERE], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack(f"{len(fds)}i", *fds))])


def send_order(to: Channel, head: dict[str, Any], blob: bytes) -> None:
    """Send the order and the worker's environment; blocks until the shim has read them.

    Raises:
        OSError: The shim is gone.
    """
    to.sendall(json.dumps(head).encode() + b"\n" + blob)
    to.shutdown(_socket.SHUT_WR)  # A fork that inherited this end must not keep the shim waiting.


def twin_at(source: Channel) -> int:
    """Return the pid of the twin at the other end.

    Raises:
        OSError: The twin is gone, or does not report.
    """
    source.settimeout(_TWIN_LIMIT_S)
    line = source.recv(32)
    source.settimeout(None)
    if not line.endswith(b"\n"):
        raise ConnectionResetError("a shim exited before it was ready")
    return int(line)


def tell_pid(to: Channel) -> None:
    """Send the launcher this process's pid."""
    with contextlib.suppress(OSError):  # It is gone: the end of file comes next.
        to.sendall(b"%d\n" % os.getpid())


def receive_fds(source: Channel) -> Sequence[int]:
    """Return the descriptors of the next message; none if the launcher is gone."""
    with contextlib.suppress(ConnectionError):
        _, rights, _, _ = source.recvmsg(len(_HERE), _socket.CMSG_SPACE(_MOST_FDS * _INT), _RECEIVE_FLAGS)
        for level, kind, data in rights:
            if (level, kind) == (_socket.SOL_SOCKET, _socket.SCM_RIGHTS):
                fds = struct.unpack(f"{len(data) // _INT}i", data[: len(data) // _INT * _INT])
                for fd in fds:
                    os.set_inheritable(fd, False)
                return fds
    return ()


def receive_order(source: Channel) -> tuple[dict[str, Any], bytes] | None:
    """Return the order and the environment; None if the launcher was gone before the order was whole."""
    try:
        data = b"".join(iter(lambda: source.recv(1 << 16), b""))
    except ConnectionError:
        return None
    head, mark, blob = data.partition(b"\n")
    return (json.loads(head), blob) if mark else None
