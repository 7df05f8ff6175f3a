"""How a launcher and a shim talk: the descriptors of a shim, and both sides of the order.

Descriptor 3 of a shim is a socket. Messages of one byte each bring descriptors: two of them, as often as a twin of the
shim is wanted, are the twin's own 3 and 4; then a single one is the place. Behind it comes the order: one line of JSON,
the worker's environment, the end of file. Where the end comes before the order is whole, the launcher died or has no
work, and nothing is started. Descriptor 4 takes the answer, one line: started, or the error.
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

#: `socket` itself costs a shim 5 ms and 1 MB: what it adds is not wanted here.
Channel = _socket.socket
_HERE = b"h"
_INT = struct.calcsize("i")
_MOST_FDS = 2
# Linux sets it with the receipt, so that no fork in between inherits the place.
_RECEIVE_FLAGS = getattr(_socket, "MSG_CMSG_CLOEXEC", 0)
#: A shim gets ready in 40 ms; one that somebody has stopped must not keep its launcher.
_TWIN_LIMIT_S = 5.0


def channel() -> tuple[Channel, Channel]:
    """Return both ends of a new channel; neither is inherited by what is executed."""
    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM, 0)
    return ours, theirs


def channel_at(fd: int) -> Channel:
    """Return the channel that a descriptor is an end of."""
    return _socket.socket(fileno=fd)


def send_fds(to: Channel, *fds: int) -> None:
    """Give descriptors away. Their locks are held while they are under way, and free if nobody receives them (unix(7)).

    Raises:
        OSError: The shim is gone.
    """
    to.sendmsg([_HERE], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack(f"{len(fds)}i", *fds))])


def send_order(to: Channel, head: dict[str, Any], blob: bytes) -> None:
    """Give the order and the worker's environment; blocks until the shim has read it.

    Raises:
        OSError: The shim is gone.
    """
    to.sendall(json.dumps(head).encode() + b"\n" + blob)
    to.shutdown(_socket.SHUT_WR)  # Whoever else has this end by a fork keeps no shim waiting.


def twin_at(source: Channel) -> int:
    """Return the pid of the twin at the other end.

    Raises:
        OSError: It is gone, or says nothing.
    """
    source.settimeout(_TWIN_LIMIT_S)
    line = source.recv(32)
    source.settimeout(None)
    if not line.endswith(b"\n"):
        raise ConnectionResetError("a shim was gone before it was there")
    return int(line)


def tell_pid(to: Channel) -> None:
    """Tell the launcher this process's pid."""
    with contextlib.suppress(OSError):  # It is gone: the end of file comes next.
        to.sendall(b"%d\n" % os.getpid())


def receive_fds(source: Channel) -> Sequence[int]:
    """Return the descriptors of the next message; none where the launcher is gone."""
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
    """Return the order and the environment; None where the launcher was gone before it was done."""
    try:
        data = b"".join(iter(lambda: source.recv(1 << 16), b""))
    except ConnectionError:
        return None
    head, mark, blob = data.partition(b"\n")
    return (json.loads(head), blob) if mark else None
