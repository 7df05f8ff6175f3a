"""A small application, served in a thread within bounds that a test chooses; and a client that does as it is told."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from agentctl.interfaces.web.connections import OTHER_END, Bounds, Connections, Server, config_for
from tests.support import wait_until

HOST = "127.0.0.1"
#: Short enough for a test to wait for their end, and long enough for a busy machine to do something within them.
SHORT = Bounds(
    handshake_s=0.4, header_s=0.4, body_s=1, keep_alive_s=0.4, stalled_s=1, linger_s=0.4,
    leave_s=1, kernel_buffer=16 * 1024,
)  # fmt: skip
CHUNK = b"x" * 16 * 1024


class Served:
    """The running server, and what its application has noticed."""

    def __init__(self, bounds: Bounds, host: str = HOST, family: int = socket.AF_INET, **settings: Any) -> None:
        self.connections = Connections(bounds)
        #: How many chunks the endless stream has given; how often one was ended; and the bodies that broke off.
        self.chunks = self.ended = self.broken = 0
        #: How many requests have reached the application.
        self.requests = 0
        #: What it has told those who asked who they are; it looks only while it may.
        self.looks: list[dict[str, Any]] = []
        self.may_look = threading.Event()
        self.may_look.set()
        paths = ("hi", "size", "endless", "ticks", "never", "who", "unread", "large")
        app = Starlette(
            routes=[Route(f"/{path}", getattr(self, f"_{path}"), methods=["GET", "POST"]) for path in paths]
        )
        self.config = config_for(app, self.connections, **settings)
        self.place = socket.create_server((host, 0), family=family, dualstack_ipv6=host == "::")
        self.host, self.port = self.place.getsockname()[:2]
        self.server = Server(self.config)
        self._thread = threading.Thread(target=lambda: self.server.run(sockets=[self.place]))

    def __enter__(self) -> Served:
        self._thread.start()
        wait_until(lambda: self.server.started, what="the server to start")
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> float:
        """End the server; return how long that took."""
        begun = time.monotonic()
        self.server.should_exit = True
        self._thread.join(30)
        assert not self._thread.is_alive()
        return time.monotonic() - begun

    def peers(self) -> list[int]:
        """Return the ports at the other ends of what is open."""
        return [one.transport.get_extra_info("peername")[1] for one in self.connections.all]

    async def _hi(self, _request: Request) -> Response:
        self.requests += 1
        return PlainTextResponse("hi")

    async def _large(self, _request: Request) -> Response:
        self.requests += 1
        return PlainTextResponse("x" * 2**20)

    async def _unread(self, _request: Request) -> Response:
        self.requests += 1
        return PlainTextResponse("no", 401)

    async def _size(self, request: Request) -> Response:
        self.requests += 1
        try:
            return PlainTextResponse(str(len(await request.body())))
        except ClientDisconnect:
            self.broken += 1
            return PlainTextResponse("gone")

    async def _endless(self, _request: Request) -> Response:
        async def give() -> AsyncIterator[bytes]:
            try:
                while True:
                    self.chunks += 1
                    yield CHUNK
                    await asyncio.sleep(0)
            finally:
                self.ended += 1

        return StreamingResponse(give())

    async def _ticks(self, _request: Request) -> Response:
        async def give() -> AsyncIterator[bytes]:
            try:
                while True:
                    yield b": tick\n\n"
                    await asyncio.sleep(0.02)
            finally:
                self.ended += 1

        return StreamingResponse(give(), media_type="text/event-stream")

    async def _never(self, request: Request) -> Response:
        self.requests += 1
        while (await request.receive())["type"] != "http.disconnect":
            pass
        self.ended += 1
        return PlainTextResponse("never")

    async def _who(self, request: Request) -> Response:
        self.requests += 1
        await run_sync(self.may_look.wait, 30)
        found = await run_sync(request.scope["state"][OTHER_END].look)
        told = {"kind": found.kind.name, "uid": found.uid}
        if found.worker is not None:
            told |= {"worker": found.worker.instance, "task": found.worker.task.id}
        self.looks.append(told)
        return JSONResponse(told)


class Client:
    """One connection to it."""

    def __init__(self, served: Served, *, tls: ssl.SSLContext | None = None, receive_buffer: int | None = None) -> None:
        family = socket.AF_INET6 if ":" in served.host else socket.AF_INET
        self.socket: socket.socket = socket.socket(family)
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(20)
        self.socket.connect((served.host, served.port))
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it."""
        self.socket.close()

    def send(self, data: bytes | bytearray) -> bool:
        """Send something; return whether the connection took it."""
        try:
            self.socket.sendall(data)
        except ConnectionError:
            return False
        return True

    def ask(self, path: str, more: str = "", method: str = "GET") -> None:
        """Send the header of a request."""
        self.send(f"{method} /{path} HTTP/1.1\r\nHost: x\r\n{more}\r\n".encode())

    def answer(self) -> tuple[int, bytes]:
        """Read one answer that says its length; return its status and its body. Status 0: the connection ended."""
        data = b""
        while b"\r\n\r\n" not in data:
            more = self.read()
            if not more:
                return 0, data
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        length = int(fields.get(b"content-length", b"0"))
        while len(body) < length:
            body += self.read() or pytest_fail(head, body)
        return int(head.split(b" ")[1]), body[:length]

    def read(self) -> bytes:
        """Read what has come; empty at the end of the connection, however it ended."""
        try:
            return self.socket.recv(1 << 16)
        except ConnectionError:
            return b""

    def rest(self) -> bytes:
        """Read until the connection ends."""
        found = b""
        while data := self.read():
            found += data
        return found

    def drip(self, data: bytes = b"x", every_s: float = 0.05) -> float:
        """Send something again and again until the connection ends; return how long it took it."""
        begun = time.monotonic()
        self.socket.settimeout(every_s)
        while time.monotonic() - begun < 20:
            if not self.send(data):
                break
            with contextlib.suppress(TimeoutError):
                if not self.read():
                    break
        return time.monotonic() - begun


def pytest_fail(head: bytes, body: bytes) -> bytes:
    """Fail: an answer broke off."""
    raise AssertionError(f"the answer broke off: {head!r} {body[:100]!r}")


def answer_of(served: Served, path: str, more: str = "", method: str = "GET", **options: Any) -> tuple[int, bytes]:
    """Return the answer to one request on a connection of its own."""
    with Client(served, **options) as client:
        client.ask(path, more, method)
        return client.answer()


@contextlib.contextmanager
def many(served: Served, number: int) -> Iterator[list[Client]]:
    """Hold many connections open."""
    held = [Client(served) for _ in range(number)]
    try:
        yield held
    finally:
        for one in held:
            one.close()
