"""Sends one message to one target, within bounded time; what comes back decides whether it is tried again.

Over HTTP: only to the hosts that the person allows, encrypted and verified unless the host is this machine, without
following any redirect. A command gets the message as JSON on its standard input, and is killed when its time is over.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentctl.adapters.searchpath import settled
from agentctl.domain.notice.notice_messages import NoticeMessage, urgency
from agentctl.domain.notice.targets import COMMAND, NTFY, NoticeTarget
from agentctl.domain.text.plaintext import plain
from agentctl.lean import NamedTuple
from agentctl.supervision.notify.armed import Armed
from agentctl.supervision.notify.book import FAILED, REFUSED, SENT

if TYPE_CHECKING:
    from http.client import HTTPConnection

#: For each step of a request (to connect, to send, to read), and for all of it, whatever the resolver and server do.
HTTP_STEP_S, HTTP_S = 10.0, 30.0
COMMAND_S = 30.0
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
#: How long a request that was given up may take to notice.
_GRACE_S = 1.0
_MOST_READ = 1 << 10
_LONGEST_SAID = 120
#: Too Many Requests and Request Timeout: the only client errors that pass by themselves.
_PASSING = frozenset({408, 429})


class Delivery(NamedTuple):
    """What became of a message."""

    #: `sent`, `failed` (to be tried again) or `refused` (not to be).
    step: str
    said: str
    #: It may have arrived, although no answer came.
    maybe: bool = False


def deliver(target: NoticeTarget, armed: Armed, message: NoticeMessage) -> Delivery:
    """Send a message to a target other than a terminal."""
    try:
        return _run(target, armed.environ, message) if target.type == COMMAND else _post(target, armed.hosts, message)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is noted, and nothing is sent again at once
        return Delivery(FAILED, _words(_why(error)))


# -- over HTTP ---------------------------------------------------------------------------------------------------------


def _post(target: NoticeTarget, hosts: tuple[str, ...], message: NoticeMessage) -> Delivery:
    from http.client import HTTPConnection, HTTPSConnection
    from urllib.parse import urlsplit

    parts = urlsplit(target.url)
    host = parts.hostname or ""
    if host not in hosts or (parts.scheme != "https" and host not in LOOPBACK):
        return Delivery(REFUSED, f"{host} is not a host that may be told")
    path, body = _ntfy(parts.path, message) if target.type == NTFY else (parts.path or "/", message.body)
    query = f"?{parts.query}" if parts.query else ""
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = kind(host, parts.port, timeout=HTTP_STEP_S)
    return _Post(connection, path + query, json.dumps(body).encode(), _headers(target)).made(HTTP_S)


class _Post:
    """One request, in a thread of its own: each step has its time, but a server may answer in any number of steps."""

    def __init__(self, connection: HTTPConnection, path: str, data: bytes, headers: Mapping[str, str]) -> None:
        self._connection, self._order = connection, (path, data, headers)
        self._lock = threading.Lock()
        self._is_sent = self._is_over = False
        self._found: Delivery | None = None
        #: Of the connection, which forgets it while an answer without a length is read.
        self._sock: socket.socket | None = None

    def made(self, seconds: float) -> Delivery:
        """Make the request; return what became of it within so many seconds."""
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        thread.join(seconds)
        if thread.is_alive():
            self._give_up()
            thread.join(_GRACE_S)
        return self._found or self._failed(f"no whole answer within {seconds:g} s")

    def _give_up(self) -> None:
        with self._lock:  # A thread that still connects sends nothing after this.
            self._is_over = True
        if self._sock is not None:
            with contextlib.suppress(OSError):  # It is closed by now.
                # Not the method of an encrypted socket: after it, the thread could write in clear.
                socket.socket.shutdown(self._sock, socket.SHUT_RDWR)

    def _run(self) -> None:
        try:
            self._answer()
        except Exception as error:  # noqa: BLE001 - the parser of answers raises more than it names, as a TypeError
            if not self._is_over:
                self._found = self._found or self._failed(_why(error))
        finally:
            self._connection.close()

    def _answer(self) -> None:
        self._connection.connect()
        with self._lock:
            if self._is_over:
                return
            self._sock, self._is_sent = self._connection.sock, True
        path, data, headers = self._order
        self._connection.request("POST", path, data, headers)
        response = self._connection.getresponse()
        if not self._is_over:  # Where a socket was shut down, half of an answer looks like a whole one.
            self._found = _judged(response.status, response.reason)
        response.read(_MOST_READ)  # So that the server is not cut off.

    def _failed(self, why: str) -> Delivery:
        return Delivery(FAILED, _words(f"{self._connection.host}: {why}"), maybe=self._is_sent)


def _headers(target: NoticeTarget) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "User-Agent": "agentctl"}
    return headers | ({"Authorization": f"Bearer {target.token}"} if target.token else {})


def _ntfy(path: str, message: NoticeMessage) -> tuple[str, Mapping[str, Any]]:
    """Return path and body of a publication by JSON, which ntfy takes at the path above the topic."""
    above, _, topic = path.rstrip("/").rpartition("/")
    body = {"topic": topic, "title": message.title, "message": message.text, "priority": urgency(message.event)}
    linked = {"click": message.url, "actions": message.actions}
    return f"{above}/", body | {key: value for key, value in linked.items() if value}


def _judged(status: int, reason: str) -> Delivery:
    said = _words(f"HTTP {status} {reason}")
    if 200 <= status < 300:
        return Delivery(SENT, said)
    return Delivery(FAILED if status >= 500 or status in _PASSING else REFUSED, said)


def _why(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {HTTP_STEP_S:g} s"
    return str(error) or type(error).__name__


def _words(text: str) -> str:
    return plain(text)[:_LONGEST_SAID]


# -- a command ---------------------------------------------------------------------------------------------------------


def _run(target: NoticeTarget, environ: Mapping[str, str], message: NoticeMessage) -> Delivery:
    with tempfile.TemporaryFile() as order:
        order.write(json.dumps(message.body).encode() + b"\n")
        order.seek(0)
        try:
            process = subprocess.Popen(
                target.argv, stdin=order, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/",
                env=settled(environ), start_new_session=True,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            return Delivery(FAILED, _words(f"{target.argv[0]}: {error}"))
        return _ended(process)


def _ended(process: subprocess.Popen[bytes]) -> Delivery:
    try:
        code = process.wait(COMMAND_S)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return Delivery(FAILED, f"it was killed after {COMMAND_S:g} s", maybe=True)
    return Delivery(SENT if code == 0 else FAILED, f"exit code {code}" if code >= 0 else f"signal {-code}")
