"""Clients of a server's stream that read and forget: `python -m bench.listeners PORT TOKEN COUNT`.

Prints a line once all of them get what happens. At the end of its input, and once no further event comes, it prints how
many events each of them had, as JSON.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import time

#: No event for so long after the end of the input: there is none left.
_REST_S = 1.0
EVENT, CURSOR = b"\nevent: event\n", b"\nevent: cursor\n"
PATH = "/api/v1/events?fleet=true"


def connected(port: int, token: str) -> socket.socket:
    """Ask for the stream, and return the connection."""
    found = socket.create_connection(("127.0.0.1", port), timeout=60)
    found.sendall(request(port, token, PATH))
    return found


def request(port: int, token: str, path: str, **headers: str) -> bytes:
    """Return a request as it is sent."""
    fields = {"Host": f"127.0.0.1:{port}", "Authorization": f"Bearer {token}", **headers}
    return "\r\n".join([f"GET {path} HTTP/1.1", *(f"{key}: {value}" for key, value in fields.items()), "", ""]).encode()


class _Listener:
    """One of them."""

    def __init__(self, port: int, token: str) -> None:
        self.socket = connected(port, token)
        self.events = 0
        self.has_begun = False
        self._tail = b""

    def read(self) -> int:
        """Read what is there; return how many events are in it."""
        data = self.socket.recv(1 << 18)
        if not data:
            raise EOFError("the server has closed a stream")
        text = self._tail + data
        # The tail, which is shorter than what is looked for, holds none that was counted already.
        found = text.count(EVENT)
        self.events += found
        self.has_begun = self.has_begun or CURSOR in text
        self._tail = text[-len(CURSOR) + 1 :] if not text.endswith(EVENT) else b""
        return found


def main() -> None:
    """Read until the input ends, and until no further event comes: signs of life never end."""
    port, token, count = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    by_fd = {one.socket.fileno(): one for one in (_Listener(port, token) for _ in range(count))}
    is_said = False
    until = None
    poll = select.poll()
    for fd in (0, *by_fd):
        poll.register(fd, select.POLLIN)
    while until is None or time.monotonic() < until:
        for fd, _ in poll.poll(until and max(0.0, until - time.monotonic()) * 1000):
            if not fd:
                poll.unregister(0)
            elif by_fd[fd].read() == 0 or until is None:
                continue
            until = time.monotonic() + _REST_S
        if not is_said and all(one.has_begun for one in by_fd.values()):
            is_said = True
            print("all of them read", flush=True)
    print(json.dumps([one.events for one in by_fd.values()]))


if __name__ == "__main__":
    main()
