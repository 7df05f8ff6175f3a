"""Another user of the machine: squats on a port, and asks a server for whatever it wants with what it has got there."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.support import start_argv, worker

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start another user's process")
#: Sends requests as another user, and prints the status codes and the texts of the answers.
_ASKS = """
import http.client, json, os, sys
"localhost".encode("idna")
os.setuid(int(sys.argv[1]))
found = []
for method, path, headers, body in json.load(sys.stdin):
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[2]), timeout=20)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    is_short = answer.headers.get_content_type() != "text/event-stream"
    found.append((answer.status, answer.read(100_000).decode("utf-8", "replace") if is_short else ""))
    connection.close()
print(json.dumps(found))
"""
_REQUEST = re.compile(rb"(GET|POST|DELETE) (/[^ ]*) HTTP/1\.1\r\n((?:[^\r\n]+\r\n)*)\r\n", re.IGNORECASE)

Request = tuple[str, str, dict[str, str], str | None]


class Squatter:
    """A process of another user at a port."""

    def __init__(self, port: int, file: Path, how: str = "answers") -> None:
        self.port, self._file = port, file
        self.process = start_argv(worker("squats", port, file, how))
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "listens\n"

    @property
    def got(self) -> bytes:
        """All that was sent to it."""
        return self._file.read_bytes()

    def requests(self) -> list[Request]:
        """Return the requests that were sent to it, without their bodies."""
        found: list[Request] = []
        for method, path, head in _REQUEST.findall(self.got):
            rows = (row.partition(b": ") for row in head.splitlines())
            headers = {name.decode().lower(): value.decode("latin-1") for name, _, value in rows}
            dropped = ("host", "connection", "content-length", "accept-encoding")
            kept = {name: value for name, value in headers.items() if name not in dropped}
            found.append((method.decode(), path.decode(), kept, "{}" if method == b"POST" else None))
        return found

    def leave(self) -> None:
        """End it."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(20)


@contextlib.contextmanager
def squatting(port: int, folder: Path, how: str = "answers") -> Iterator[Squatter]:
    """Have another user's process at a port within the block."""
    squatter = Squatter(port, folder / f"squatted-{port}", how)
    try:
        yield squatter
    finally:
        squatter.leave()


def asked_by_another(port: int, requests: Iterable[Request], uid: int = NOBODY) -> list[int]:
    """Have another user ask a server; return the status codes."""
    return [status for status, _ in answers_to_another(port, requests, uid)]


def answers_to_another(port: int, requests: Iterable[Request], uid: int = NOBODY) -> list[tuple[int, str]]:
    """Have another user ask a server; return the status codes and the texts."""
    asked = subprocess.run(
        [sys.executable, "-c", _ASKS, str(uid), str(port)], input=json.dumps(list(requests)), capture_output=True,
        text=True, check=True, timeout=60,
    )  # fmt: skip
    return [(status, text) for status, text in json.loads(asked.stdout)]
