"""How a launcher and a shim talk: the descriptors of a shim, and both sides of the order.

3 is a socket by which the place comes (a byte, with the descriptor beside it), then the order (one line of JSON, then
the worker's environment, end of file); 4 takes the answer (one line: started, or the error). End of file before a
whole order means that the launcher died or has no work, and nothing is started.
"""

from __future__ import annotations

import _socket
import array
import json
import os

from agentctl.lean import Any

ORDER_FD, ANSWER_FD = 3, 4

#: `socket` itself costs a shim 5 ms and 1 MB: what it adds is not wanted here.
Channel = _socket.socket
_HERE = b"p"
_FD = array.array("i")
# Linux sets it with the receipt, so that no fork in between inherits the place.
_RECEIVE_FLAGS = getattr(_socket, "MSG_CMSG_CLOEXEC", 0)


def channel() -> tuple[Channel, Channel]:
    """Return both ends of a new channel; neither is inherited by what is executed."""
    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM, 0)
    return ours, theirs


def send_place(to: Channel, fd: int) -> None:
    """Give a place away: its lock is held by what is under way, and free again if nobody receives it (unix(7)).

    Raises:
        OSError: The shim is gone.
    """
    to.sendmsg([_HERE], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", [fd]).tobytes())])


def send_order(to: Channel, head: dict[str, Any], blob: bytes) -> None:
    """Give the order and the worker's environment; blocks until the shim has read it.

    Raises:
        OSError: The shim is gone.
    """
    to.sendall(json.dumps(head).encode() + b"\n" + blob)
    to.shutdown(_socket.SHUT_WR)  # Whoever else has this end by a fork keeps no shim waiting.


def receive(fd: int) -> tuple[int, dict[str, Any], bytes] | None:
    """Return the place, the order and the environment; None where the launcher was gone before it was done."""
    source = _socket.socket(fileno=fd)
    try:
        place = _receive_place(source)
        if place is None:
            return None
        data = b"".join(iter(lambda: source.recv(1 << 16), b""))
    except ConnectionError:
        return None
    finally:
        source.close()
    head, mark, blob = data.partition(b"\n")
    return (place, json.loads(head), blob) if mark else None


def _receive_place(source: Channel) -> int | None:
    _, rights, _, _ = source.recvmsg(len(_HERE), _socket.CMSG_SPACE(_FD.itemsize), _RECEIVE_FLAGS)
    for level, kind, data in rights:
        if (level, kind) == (_socket.SOL_SOCKET, _socket.SCM_RIGHTS):
            place = array.array("i", data)[0]
            os.set_inheritable(place, False)
            return place
    return None
