"""Bounds of what one connection to the server may cost: its time, its memory, and its place among the others.

uvicorn bounds an idle connection and little else. So each connection is bounded in front of uvicorn's protocol, by what
asyncio and ASGI say of it. No dripping byte puts off a deadline: of the TLS handshake, the header, the body, the time
between requests, and of a client that reads nothing. While the application works on an answer nothing is asked of the
client, so a stream that is read lives for as long as it likes. If there are too many connections, one without a request
in service gives way to the new one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from typing import Any, Literal

import h11
import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from agentctl.adapters.peers import Address
from agentctl.lean import NamedTuple
from agentctl.operations.where.connecting import Connecting, PeerKind, who_connects

#: The key of `scope["state"]` under which the application finds the `OtherEnd` of its connection.
OTHER_END = "other_end"
_CONNECTION = "connection"
#: How a header ends, for uvicorn's parser.
_HEADER_END = re.compile(rb"\n\r?\n")
_TOO_LARGE = "431 Request Header Fields Too Large", "The header of the request is too large. Are there many cookies?"
_TOO_LATE = "408 Request Timeout", "The header of the request took too long."
#: So often within the time that a client may read nothing is looked whether it does.
_LOOKS = 4


class Bounds(NamedTuple):
    """What one connection may cost; times in seconds, sizes in bytes."""

    most_connections: int = 256
    handshake_s: float = 10
    #: From the connection, or from the first byte of a later request, to the end of its header.
    header_s: float = 10
    header_bytes: int = 32 * 1024
    #: Of requests that are sent before the one ahead of them is answered.
    ahead_bytes: int = 64 * 1024
    #: From the header to the end of the body; the same from the answer to the end of a body that was not read.
    body_s: float = 30
    keep_alive_s: float = 20
    #: Bytes that wait to be sent while the client takes none for so long end the connection.
    stalled_s: float = 30
    #: More than this, and an application that streams has to wait.
    write_buffer: int = 64 * 1024
    #: The same in the kernel (SO_SNDBUF).
    kernel_buffer: int = 256 * 1024
    #: How long a refused client may go on sending until it has seen that.
    linger_s: float = 1
    #: At the end of the server: how long answers that were begun (streams) and other ones may still take.
    leave_streams_s: float = 0.2
    leave_s: float = 1.5


class Connections:
    """All connections of a server, and what became of others; to be read in the server's thread."""

    def __init__(self, bounds: Bounds | None = None) -> None:
        self.bounds = bounds or Bounds()
        self._in_service: set[Connection] = set()
        #: The others; first the one that has waited longest.
        self._waiting: dict[Connection, None] = {}
        #: All that were accepted.
        self.accepted = 0
        #: Closed at once, because all others had requests in service.
        self.refused = 0
        #: Closed without a request in service, in favour of a new one.
        self.displaced = 0
        #: Ended at a deadline (but not for being idle), or for sending too much ahead.
        self.timed_out = 0

    @property
    def all(self) -> list[Connection]:
        """Those that are open."""
        return [*self._in_service, *self._waiting]

    @property
    def open(self) -> int:
        """How many are open."""
        return len(self._in_service) + len(self._waiting)

    @property
    def in_service(self) -> int:
        """How many of them have a request in service; a stream is one."""
        return len(self._in_service)

    def admit(self, new: Connection) -> bool:
        """Take in a new connection; return False if there is no place for it."""
        self.accepted += 1
        if self.open >= self.bounds.most_connections:
            oldest = next(iter(self._waiting), None)
            if oldest is None:
                self.refused += 1
                return False
            self.displaced += 1
            oldest.abort()
        self._waiting[new] = None
        return True

    def serves(self, one: Connection) -> bool:
        """Return whether a connection has a request in service."""
        return one in self._in_service

    def serve(self, one: Connection) -> None:
        """Keep the place of a connection, which has a request in service now."""
        if self._waiting.pop(one, one) is None:
            self._in_service.add(one)

    def rest(self, one: Connection) -> None:
        """Let a connection give way again."""
        if one in self._in_service:
            self._in_service.discard(one)
            self._waiting[one] = None

    def forget(self, one: Connection) -> None:
        """Take out a connection that has ended."""
        self._in_service.discard(one)
        self._waiting.pop(one, None)


class OtherEnd:
    """Who is at the other end of a connection: looked up when it is asked for, and then known."""

    def __init__(self, peer: Address | None, own: Address | None) -> None:
        self._ends = (peer, own)
        self._found: Connecting | None = None
        self._looking = threading.Lock()

    def look(self) -> Connecting:
        """Return who it is. This blocks for some milliseconds: call it in a thread.

        What could not be found out is looked up again the next time.
        """
        peer, own = self._ends
        if peer is None or own is None:
            return Connecting(PeerKind.GONE)
        with self._looking:
            if self._found is None:
                found = who_connects(peer, own)
                if found.kind is PeerKind.GONE:
                    return found
                self._found = found
            return self._found


class Config(uvicorn.Config):
    """The settings of the server, with those that uvicorn does not have."""

    connections: Connections
    #: Handshakes are ours, so that they are counted and bounded: uvicorn sees connections without TLS.
    tls: ssl.SSLContext | None = None


def config_for(
    app: ASGIApp,
    connections: Connections,
    *,
    certificate: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
    lifespan: Literal["on", "off"] = "off",
    log_level: str = "critical",
) -> Config:
    """Return the settings of a server whose connections are bounded.

    Args:
        app: The application.
        connections: Made by the caller, who gives it its bounds and may show its counts.
        certificate: The file of a certificate and those above it; with `key`, the server speaks TLS.
        key: The file of its private key.
        lifespan: Whether the application wants to be told of its start and its end.
        log_level: Up to `error`, an exception of the application is printed; so is the end of a stream at the server's.

    Raises:
        OSError: The certificate or its key cannot be read, or is not valid (ssl.SSLError).
    """
    config = Config(
        _noticed(app), http=Connection, ws="none", loop="asyncio", lifespan=lifespan, interface="asgi3", workers=1,
        log_config=None, log_level=log_level, access_log=False, server_header=False, date_header=True,
        proxy_headers=False, backlog=_BACKLOG, h11_max_incomplete_event_size=connections.bounds.header_bytes,
        timeout_keep_alive=_NEVER_S, timeout_graceful_shutdown=_GRACEFUL_S,
    )  # fmt: skip
    config.connections = connections
    if certificate is not None:
        config.tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        config.tls.load_cert_chain(certificate, key)
    return config


#: As many connections are accepted at once. Those that are about to be refused have descriptors too, for a moment.
_BACKLOG = 100
_GRACEFUL_S = 2
#: Idle connections are ended here, which knows what waits to be sent.
_NEVER_S = 86_400


class Server(uvicorn.Server):
    """A server whose connections end with it."""

    config: Config

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End all connections, and the server."""
        for one in self.config.connections.all:
            one.leave()
        await super().shutdown(sockets)


def serve_connections(
    config: Config, places: Sequence[socket.socket], begin: Callable[[], None] = lambda: None
) -> None:
    """Serve at sockets that listen until interrupted.

    Args:
        begin: Called as soon as no signal can be lost any more. An interrupt that is raised as an exception can be:
            whatever Python calls back by itself throws it away, as the import of a module does now and then.

    Raises:
        KeyboardInterrupt: By Ctrl-C, once all connections are closed.
        SystemExit: By SIGTERM, in the same way.
    """
    server = Server(config)
    came: list[int] = []

    def leave(number: int, _frame: object) -> None:
        server.should_exit = True
        if number in came:  # It does not end by itself.
            raise _end_by(number)
        came.append(number)

    # From now on: an exception in the midst of making the loop would leave half of it behind. uvicorn has handlers of
    # its own while it serves; at its end it raises what came meanwhile once more.
    before = {number: signal.signal(number, leave) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        begin()
        server.run(sockets=list(places))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
    if came:
        raise _end_by(came[-1])


def _end_by(number: int) -> BaseException:
    return KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)


class _Request:
    """A request in service: what the application has been given of it, and what was sent of the answer."""

    def __init__(self, connection: Connection, until: float) -> None:
        self._connection, self._until = connection, until
        #: All of it has come: what comes now is sent ahead.
        self.is_whole = False
        self.has_answer_begun = self.is_over = False

    async def receive(self, receive: Receive) -> Message:
        """Return the next part of the body; who takes too long for it is gone."""
        try:
            async with asyncio.timeout_at(None if self.is_whole else self._until):
                message = await receive()
        except TimeoutError:
            self._connection.cut()
            return {"type": "http.disconnect"}
        self.is_whole = self.is_whole or not message.get("more_body", False)
        return message

    async def send(self, message: Message, send: Send) -> None:
        """Send a part of the answer; nothing follows a refusal."""
        if self._connection.is_ending:
            return
        await send(message)
        self.has_answer_begun = True
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self.end()

    def end(self) -> None:
        """Have the connection wait for the next request."""
        if not self.is_over:
            self.is_over = True
            self._connection.answered(self)


def _noticed(app: ASGIApp) -> ASGIApp:
    """Return the application; its connections notice where each request begins and ends."""

    async def noticed(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        connection: Connection = scope["state"][_CONNECTION]
        request = connection.request()
        try:
            await app(scope, lambda: request.receive(receive), lambda message: request.send(message, send))
        finally:
            request.end()
            if connection.is_ending:  # uvicorn complains of an answer without an end until it knows that.
                while (await receive())["type"] != "http.disconnect":
                    pass

    return noticed


class Connection(asyncio.Protocol):
    """One connection, within the bounds: what stands between the socket and uvicorn's protocol."""

    def __init__(
        self,
        config: Config,
        server_state: Any,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._all, self._bounds, self._tls = config.connections, config.connections.bounds, config.tls
        self._server = config, server_state, app_state
        self._loop = asyncio.get_running_loop()
        #: None until the connection is secured.
        self._protocol: H11Protocol | None = None
        #: What came before the end of the handshake was known here.
        self._early: list[bytes] = []
        #: What has come of the next header.
        self._header = bytearray()
        self._request: _Request | None = None
        self._ahead = 0
        self._is_refused = False
        self._deadline: asyncio.TimerHandle | None = None
        #: The next look whether the client reads, and how many were in vain.
        self._looking: asyncio.TimerHandle | None = None
        self._in_vain = 0

    # -- its beginning and its end -------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a place, or be refused."""
        self.transport = self._socket = transport
        if not self._all.admit(self):
            transport.abort()
            return
        _tune(transport.get_extra_info("socket"), self._bounds)
        if self._tls is None:
            self._begin(transport)
            return
        transport.pause_reading()  # The first bytes are for TLS.
        self._handshake = self._loop.create_task(self._secure(transport, self._tls))

    async def _secure(self, transport: asyncio.Transport, tls: ssl.SSLContext) -> None:
        """Shake hands, and begin."""
        secured = None
        with contextlib.suppress(OSError):  # Also ssl.SSLError: no handshake, or a broken one.
            secured = await self._loop.start_tls(
                transport, self, tls, server_side=True, ssl_handshake_timeout=self._bounds.handshake_s,
                ssl_shutdown_timeout=self._bounds.linger_s,
            )  # fmt: skip
        if secured is None or secured.is_closing():
            self.abort()
            return
        self._begin(secured)
        for data in self._early:
            self.data_received(data)

    def _begin(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        transport.set_write_buffer_limits(high=self._bounds.write_buffer)
        own, peer = (_address(transport.get_extra_info(name)) for name in ("sockname", "peername"))
        config, server_state, app_state = self._server
        state = {**app_state, OTHER_END: OtherEnd(peer, own), _CONNECTION: self}
        self._protocol = H11Protocol(config, server_state, state)
        self._protocol.connection_made(transport)
        self._wait(self._bounds.header_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place back."""
        self._all.forget(self)
        self._all.timed_out += isinstance(exc, TimeoutError)  # The kernel has seen that nothing is read.
        for timer in filter(None, (self._deadline, self._looking)):
            timer.cancel()
        if self._protocol is not None:
            self._protocol.connection_lost(exc)

    def abort(self) -> None:
        """End it now, whatever waits to be sent."""
        self._all.forget(self)
        self.transport.abort()
        self._socket.abort()

    def cut(self) -> None:
        """End it for what its client does, or does not do."""
        self._all.timed_out += 1
        self.abort()

    @property
    def is_ending(self) -> bool:
        """Whether nothing more is sent."""
        return self._is_refused or self.transport.is_closing()

    def leave(self) -> None:
        """The server ends: so does a connection without a request in service; another one may take a little longer."""
        request = self._request
        if request is None or request.is_over:
            self.abort()
        else:
            self._call_later(
                self._bounds.leave_streams_s if request.has_answer_begun else self._bounds.leave_s, self.abort
            )

    # -- what comes ----------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Pass it on, unless it is too much."""
        if self._protocol is None:
            self._early.append(data)
        elif not self._is_refused and (self._is_ahead(data) if self._all.serves(self) else self._is_header(data)):
            try:
                self._protocol.data_received(data)
            except h11.LocalProtocolError:  # A broken body, whose request has its answer already.
                self.abort()
            if self._request is not None and self._request.is_whole:
                self.transport.resume_reading()  # Who does not read does not notice that the client is gone.

    def _is_ahead(self, data: bytes) -> bool:
        """Take in what comes during a request; return False, and end it, if too much is sent behind the request."""
        if self._request is not None and self._request.is_whole and not self._request.is_over:
            self._ahead += len(data)
        if self._ahead > self._bounds.ahead_bytes:  # Browsers send nothing ahead.
            self.cut()
        return not self.transport.is_closing()

    def _is_header(self, data: bytes) -> bool:
        """Take in a part of a header; return False, and refuse it, if it is too large."""
        if self._request is not None and not self._request.is_whole:
            return True  # The rest of a body that was not read.
        if self._request is not None and not self._header:
            self._wait(self._bounds.header_s)
        known, most = len(self._header), self._bounds.header_bytes
        self._header += data[: most + 4 - known]
        end = _HEADER_END.search(self._header, max(0, known - 2))
        if end is not None:
            self._all.serve(self)
        elif len(self._header) > most:
            self._refuse(*_TOO_LARGE)
        return not self._is_refused

    def eof_received(self) -> None:
        """End it: a client that sends no more is taken to be gone."""
        self.abort()

    def request(self) -> _Request:
        """Begin a request, which is in service from now on."""
        self._all.serve(self)
        self._call_later(None)
        self._header.clear()
        self._ahead = 0
        self._request = _Request(self, self._loop.time() + self._bounds.body_s)
        return self._request

    def answered(self, request: _Request) -> None:
        """Wait for the next request, or for the end of a body that was not read."""
        if request is self._request:
            self._all.rest(self)
            self._wait(self._bounds.keep_alive_s if request.is_whole else self._bounds.body_s)

    # -- deadlines -----------------------------------------------------------------------------------------------------

    def _wait(self, seconds: float) -> None:
        self._call_later(seconds, self._expire)

    def _call_later(self, seconds: float | None, then: Callable[[], None] = lambda: None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self._loop.call_later(seconds, then)

    def _expire(self) -> None:
        """End it, unless its client has yet to read what was sent."""
        if self._unsent():
            self._watch_reader()
        elif self._header and not self.is_ending and not self._all.serves(self):
            self._all.timed_out += 1
            self._refuse(*_TOO_LATE)
        else:
            self.abort()

    def _refuse(self, status: str, why: str) -> None:
        """Answer what is not a request yet; and close, once the client may have seen that.

        Closing at once could take the answer from it, since unread data makes the kernel reset the connection (RFC
        9112, 9.6): what it still sends is thrown away.
        """
        self._is_refused = True
        head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(why)}"
        self.transport.write(f"{head}\r\nConnection: close\r\n\r\n{why}".encode("ascii"))
        if self.transport.can_write_eof():  # TLS says by its end that nothing follows.
            with contextlib.suppress(OSError):  # It was reset meanwhile.
                self.transport.write_eof()
        self._call_later(self._bounds.linger_s, self.abort)

    # -- what is written -----------------------------------------------------------------------------------------------

    def pause_writing(self) -> None:
        """Have the application wait, and watch that the client reads."""
        assert self._protocol is not None
        self._protocol.pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        """Let the application go on: the client reads."""
        assert self._protocol is not None
        self._in_vain = 0
        self._protocol.resume_writing()

    def _unsent(self) -> int:
        """Return how many bytes the kernel has not taken yet."""
        below = 0 if self.transport is self._socket else self._socket.get_write_buffer_size()
        return self.transport.get_write_buffer_size() + below

    def _watch_reader(self) -> None:
        """Look again and again whether less waits to be sent, unless that is done already."""
        if self._looking is None:
            self._in_vain = 0
            self._look_later()

    def _look_later(self) -> None:
        self._looking = self._loop.call_later(self._bounds.stalled_s / _LOOKS, self._look, self._unsent())

    def _look(self, before: int) -> None:
        unsent, self._looking = self._unsent(), None
        self._in_vain = self._in_vain + 1 if unsent >= before else 0
        if self._in_vain == _LOOKS:
            self.cut()
        elif unsent:
            self._look_later()
        elif self._request is None or self._request.is_over:
            self._wait(self._bounds.keep_alive_s)


def _address(name: Any) -> Address | None:
    """Return the address of an end of a connection; None if it is not a TCP connection."""
    return Address(str(name[0]), int(name[1])) if isinstance(name, tuple) and len(name) >= 2 else None


def _tune(place: Any, bounds: Bounds) -> None:
    """Bound what the kernel keeps for a connection, and have it notice a machine that is gone (tcp(7))."""
    with contextlib.suppress(OSError):
        place.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, bounds.kernel_buffer)
        place.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            place.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30)
            place.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10)
            place.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(bounds.stalled_s * 1000))
