"""Bounds of what one connection to the server may cost: its time, its memory, and its place among the others.

uvicorn bounds an idle connection and little else. Here each phase of a connection has a deadline that no dripping byte
puts off: the TLS handshake, the header, the body, the time between requests, and writing without any progress. While
the application works on an answer nothing is asked of the client, so a stream that is read lives for as long as it
likes. If there are too many connections, one that has no request in service gives way to the new one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Literal

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from agentctl.adapters.peers import Address
from agentctl.lean import NamedTuple
from agentctl.operations.where.connecting import Connecting, PeerKind, who_connects

#: The key of `scope["state"]` under which the application finds the `OtherEnd` of its connection.
OTHER_END = "other_end"
#: As much is given to the parser at once, so that it refuses a header before much more than it may be has been kept.
_SLICE = 8 * 1024
#: What a client still sends after it was refused is thrown away, up to this: closing at once could take the refusal
#: from it, since unread data makes the kernel reset the connection (RFC 9112, 9.6).
_MOST_THROWN_AWAY = 8 * 1024 * 1024
_TOO_LARGE = "The header of the request is too large. Are there many cookies of this host?"


class Bounds(NamedTuple):
    """What one connection may cost; times in seconds, sizes in bytes."""

    most_connections: int = 256
    handshake_s: float = 10
    #: From the connection, or from the first byte of a later request, to the end of its header.
    header_s: float = 10
    header_bytes: int = 32 * 1024
    #: Of requests that are sent before the one ahead of them is answered.
    ahead_bytes: int = 64 * 1024
    #: From the header to the end of the body.
    body_s: float = 30
    #: A body must bring this many bytes per second, looked at every so often.
    body_rate: float = 256
    body_look_s: float = 5
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
        self._open: dict[Connection, None] = {}
        #: All that were accepted.
        self.accepted = 0
        #: Closed at once, because all others had requests in service.
        self.refused = 0
        #: Closed without a request in service, in favour of a new one.
        self.displaced = 0
        #: Ended at a deadline (but not for being idle), or for sending too much ahead.
        self.timed_out = 0

    @property
    def open(self) -> int:
        """How many are open."""
        return len(self._open)

    @property
    def in_service(self) -> int:
        """How many of them have a request in service; a stream is one."""
        return sum(1 for one in self._open if one.is_in_service)

    def admit(self, new: Connection) -> bool:
        """Take in a new connection; return False if there is no place for it."""
        self.accepted += 1
        if len(self._open) >= self.bounds.most_connections:
            oldest = min((one for one in self._open if not one.is_in_service), key=_waiting_since, default=None)
            if oldest is None:
                self.refused += 1
                return False
            self.displaced += 1
            oldest.abort()
        self._open[new] = None
        return True

    def leave(self, one: Connection) -> None:
        """Take out a connection that is lost."""
        self._open.pop(one, None)


def _waiting_since(one: Connection) -> float:
    return one.waiting_since


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

    def load(self) -> None:
        """Load it all, and take the handshakes from uvicorn."""
        super().load()
        self.tls, self.ssl = self.ssl, None


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
        OSError: The certificate or its key cannot be read, or is none (ssl.SSLError).
    """
    bounds = connections.bounds
    config = Config(
        app, http=Connection, ws="none", loop="asyncio", lifespan=lifespan, interface="asgi3", workers=1,
        log_config=None, log_level=log_level, access_log=False, server_header=False, date_header=True,
        proxy_headers=False, limit_concurrency=None, backlog=_BACKLOG,
        h11_max_incomplete_event_size=bounds.header_bytes, timeout_graceful_shutdown=_GRACEFUL_S,
        ssl_certfile=certificate, ssl_keyfile=key,
    )  # fmt: skip
    config.connections = connections
    config.load()
    return config


#: As many connections are accepted at once. Those that are about to be refused have descriptors too, for a moment.
_BACKLOG = 100
_GRACEFUL_S = 2


def serve(config: Config, places: Sequence[socket.socket], begin: Callable[[], None] = lambda: None) -> None:
    """Serve at sockets that listen until interrupted.

    Args:
        begin: Called as soon as no signal can be lost any more. An interrupt that is raised as an exception can be:
            whatever Python calls back by itself throws it away, as the import of a module does now and then.

    Raises:
        KeyboardInterrupt: By Ctrl-C, once all connections are closed.
        SystemExit: By SIGTERM, in the same way.
    """
    server = uvicorn.Server(config)
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


class _Phase(Enum):
    """What a connection waits for."""

    HANDSHAKE = "handshake"
    HEADER = "header"
    BODY = "body"
    #: The application.
    ANSWER = "answer"
    IDLE = "idle"
    #: The client, to see that it was refused.
    LINGER = "linger"
    #: The kernel, to take what is left.
    CLOSING = "closing"


class _Outlet(asyncio.Transport):
    """A transport that counts what is written, so that progress can be told from a full buffer.

    Args:
        outer: What the protocol writes to.
        inner: What that writes to: the same without TLS.
        begin: Called when something waits to be sent.
    """

    def __init__(self, outer: asyncio.Transport, inner: asyncio.Transport, begin: Any) -> None:
        super().__init__()
        self._outer, self._inner, self._begin = outer, inner, begin
        self._written = 0

    @property
    def waiting(self) -> int:
        """How many bytes the kernel has not taken yet."""
        below = self._inner.get_write_buffer_size() if self._inner is not self._outer else 0
        return self._outer.get_write_buffer_size() + below

    @property
    def taken(self) -> int:
        """A number that grows whenever the kernel takes something."""
        return self._written - self.waiting

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._written += len(data)
        self._outer.write(data)
        if self.waiting:
            self._begin()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._outer.get_extra_info(name, default)

    def is_closing(self) -> bool:
        return self._outer.is_closing()

    def close(self) -> None:
        if not self._outer.is_closing():  # A transport of TLS that is closed twice has nothing left to ask.
            self._outer.close()

    def abort(self) -> None:
        self._outer.abort()
        self._inner.abort()

    def pause_reading(self) -> None:
        self._outer.pause_reading()

    def resume_reading(self) -> None:
        self._outer.resume_reading()

    def can_write_eof(self) -> bool:
        return self._outer.can_write_eof()

    def write_eof(self) -> None:
        self._outer.write_eof()


class Connection(H11Protocol):
    """One connection, within the bounds."""

    config: Config

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._all = config.connections
        self._bounds = config.connections.bounds
        self._socket: asyncio.Transport | None = None
        self._outlet: _Outlet | None = None
        self._handshake: asyncio.Task[None] | None = None
        #: What came before the end of the handshake was known here.
        self._early: list[bytes] = []
        self._phase = _Phase.HANDSHAKE
        #: The phase and the request that the deadline belongs to.
        self._armed: tuple[_Phase, object] | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._body_until = 0.0
        self._came = 0
        self._thrown_away = 0
        self._stalled: asyncio.TimerHandle | None = None
        self._leaving: asyncio.TimerHandle | None = None
        self.waiting_since = 0.0

    # -- its beginning and its end -------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a place, or be refused."""
        self._socket = transport
        self.waiting_since = self.loop.time()
        if not self._all.admit(self):
            transport.abort()
            return
        _tune(transport.get_extra_info("socket"), self._bounds)
        if self.config.tls is None:
            self._begin(transport)
            return
        transport.pause_reading()  # The first bytes are for TLS.
        self.connections.add(self)
        self._handshake = self.loop.create_task(self._secure(transport, self.config.tls))

    async def _secure(self, transport: asyncio.Transport, tls: ssl.SSLContext) -> None:
        """Shake hands, and begin."""
        secured = None
        with contextlib.suppress(OSError):  # Also ssl.SSLError: no handshake, or a broken one.
            secured = await self.loop.start_tls(
                transport, self, tls, server_side=True, ssl_handshake_timeout=self._bounds.handshake_s,
                ssl_shutdown_timeout=self._bounds.linger_s,
            )  # fmt: skip
        if secured is None or secured.is_closing():
            transport.abort()
            self._forget()
            return
        self._begin(secured)
        early, self._early = self._early, []
        for data in early:
            self.data_received(data)

    def _begin(self, transport: asyncio.Transport) -> None:
        assert self._socket is not None
        transport.set_write_buffer_limits(high=self._bounds.write_buffer)
        self._outlet = _Outlet(transport, self._socket, self._watch_writing)
        own, peer = (_address(transport.get_extra_info(name)) for name in ("sockname", "peername"))
        self.app_state = {**self.app_state, OTHER_END: OtherEnd(peer, own)}
        super().connection_made(self._outlet)
        self._settle()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place back."""
        if self._outlet is not None:
            with contextlib.suppress(h11.LocalProtocolError):
                super().connection_lost(exc)
            self._unset_keepalive_if_required()
        self._forget()

    def _forget(self) -> None:
        self._all.leave(self)
        self.connections.discard(self)
        for timer in filter(None, (self._deadline, self._stalled, self._leaving)):
            timer.cancel()
        self._deadline = self._stalled = self._leaving = None
        self._phase = _Phase.CLOSING

    def abort(self) -> None:
        """End it now, whatever waits to be sent."""
        self._all.leave(self)
        if self._outlet is not None:
            self._tell_of_the_end()
            self._outlet.abort()
        elif self._socket is not None:
            self._socket.abort()

    def _tell_of_the_end(self) -> None:
        """Let the application know at once that nobody reads its answer any more."""
        if self.is_in_service:
            self.cycle.disconnected = True
            self.cycle.waiting_for_100_continue = False
            self.cycle.message_event.set()
            self.flow.resume_writing()

    def shutdown(self) -> None:
        """The server ends: so does a connection without a request in service; another one may take a little longer."""
        if self._outlet is None or not self.is_in_service:
            self.abort()
            return
        self.cycle.keep_alive = False
        has_begun = self.cycle.response_started
        delay = self._bounds.leave_streams_s if has_begun else self._bounds.leave_s
        self._leaving = self.loop.call_later(delay, self.abort)

    # -- what comes ----------------------------------------------------------------------------------------------------

    @property
    def is_in_service(self) -> bool:
        """Whether the application works on a request of it."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete and not cycle.disconnected

    def data_received(self, data: bytes) -> None:
        """Have it parsed piece by piece."""
        if self._outlet is None:
            self._early.append(data)
            return
        self._came += len(data)
        for begin in range(0, len(data), _SLICE):
            if self._phase is _Phase.LINGER:
                self._throw_away(len(data) - begin)
                return
            if self.transport.is_closing():
                return
            super().data_received(data[begin : begin + _SLICE])
        self._settle()

    def eof_received(self) -> None:
        """A client that sends no more is taken to be gone: the transport closes itself."""
        if self._outlet is not None:
            self._tell_of_the_end()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._unset_keepalive_if_required()  # The deadlines are our own.
        self._settle()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request."""
        is_too_large = len(self.conn.trailing_data[0]) > self._bounds.header_bytes
        self._refuse(431, _TOO_LARGE) if is_too_large else self._refuse(400, msg)

    # -- deadlines -----------------------------------------------------------------------------------------------------

    def _phase_now(self) -> _Phase:
        if self._phase is _Phase.LINGER:
            return _Phase.LINGER
        if self.transport.is_closing():
            return _Phase.CLOSING
        if self.conn.their_state is h11.SEND_BODY:
            return _Phase.BODY  # Also if the answer did not wait for it.
        if self.is_in_service:
            return _Phase.ANSWER
        request: RequestResponseCycle | None = self.cycle
        is_first = request is None
        return _Phase.HEADER if is_first or self.conn.trailing_data[0] else _Phase.IDLE

    def _settle(self) -> None:
        """Set the deadline of the phase that the connection is in by now; one that runs already is not put off."""
        now = self._phase_now()
        if now is _Phase.ANSWER:
            self._read_ahead()
        if now is _Phase.LINGER or self._armed == (now, self.cycle):
            return
        self._phase, self._armed = now, (now, self.cycle)
        if now in {_Phase.HEADER, _Phase.IDLE}:
            self.waiting_since = self.loop.time()
        match now:
            case _Phase.HEADER:
                self._arm(self._bounds.header_s, self._header_is_late)
            case _Phase.IDLE:
                self._arm(self._bounds.keep_alive_s, self._close)
            case _Phase.BODY:
                self._body_until = self.loop.time() + self._bounds.body_s
                self._expect_body()
            case _:
                self._arm(None, self._close)

    def _read_ahead(self) -> None:
        """Go on reading behind a request in service: who does not read does not notice that the client is gone.

        uvicorn stops there. A client that sends much ahead is ended instead: browsers send nothing ahead.
        """
        if len(self.conn.trailing_data[0]) > self._bounds.ahead_bytes:
            self._all.timed_out += 1
            self.abort()
        else:
            self.flow.resume_reading()

    def _arm(self, seconds: float | None, then: Any) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, then)

    def _header_is_late(self) -> None:
        if self.conn.trailing_data[0]:
            self._all.timed_out += 1
            self._refuse(408, "The header of the request took too long.")
        else:
            self._close()

    def _expect_body(self) -> None:
        """Look at the body again soon, or at the end of its time."""
        self._came = 0
        left = self._body_until - self.loop.time()
        self._arm(max(0, min(left, self._bounds.body_look_s)), self._look_at_body)

    def _look_at_body(self) -> None:
        """End a body that is late or slow; but the time in which it was not read here is not the client's."""
        if self.flow.read_paused:
            self._body_until += self._bounds.body_look_s
        elif self.loop.time() >= self._body_until or self._came < self._bounds.body_rate * self._bounds.body_look_s:
            self._all.timed_out += 1
            self._refuse(408, "The body of the request took too long.")
            return
        self._expect_body()

    def _close(self) -> None:
        """Close it, once what waits has been sent."""
        self.transport.close()
        self._settle()

    def _refuse(self, status: int, text: str) -> None:
        """Answer a request that is none, or will not be; and close, once the client may have seen that."""
        can_answer = self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}
        self._tell_of_the_end()
        if not can_answer:
            self._close()
            return
        body = text.encode("ascii")
        fields = {"content-type": "text/plain; charset=utf-8", "content-length": str(len(body)), "connection": "close"}
        answer = h11.Response(status_code=status, headers=list(fields.items()), reason=STATUS_PHRASES[status])
        for event in (answer, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event))
        if self.transport.is_closing() or not self.transport.can_write_eof():  # TLS says itself that nothing follows.
            self._close()
            return
        self._phase = _Phase.LINGER
        with contextlib.suppress(OSError):  # It was reset meanwhile.
            self.transport.write_eof()
        self.transport.resume_reading()
        self.waiting_since = self.loop.time()
        self._arm(self._bounds.linger_s, self.abort)

    def _throw_away(self, size: int) -> None:
        self._thrown_away += size
        if self._thrown_away > _MOST_THROWN_AWAY:
            self.abort()

    # -- what is written -----------------------------------------------------------------------------------------------

    def _watch_writing(self) -> None:
        """Watch that what waits to be sent gets less, also once it is closed."""
        if self._stalled is None and self._outlet is not None:
            self._look_at_writing_later(self._outlet.taken, self.loop.time())

    def _look_at_writing_later(self, taken: int, since: float) -> None:
        period = self._bounds.stalled_s / 4
        self._stalled = self.loop.call_later(period, self._look_at_writing, taken, since)

    def _look_at_writing(self, taken: int, since: float) -> None:
        outlet, self._stalled = self._outlet, None
        if outlet is None or not outlet.waiting:
            return
        if outlet.taken > taken:
            self._look_at_writing_later(outlet.taken, self.loop.time())
        elif self.loop.time() - since < self._bounds.stalled_s:
            self._look_at_writing_later(taken, since)
        else:
            self._all.timed_out += 1
            self.abort()


def _address(name: Any) -> Address | None:
    """Return the address of an end of a connection; None if it is no TCP connection."""
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
