"""Sends one request over HTTP, with the standard library: a POST, and its answer as it comes.

The proxies of the environment are used (`HTTPS_PROXY`, `NO_PROXY`), certificates are checked, and no redirect is
followed: the key goes to the address that was named, and to no other.
"""

from __future__ import annotations

import http.client
import os
import socket
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Self
from urllib.parse import SplitResult, unquote, urlsplit

from agentctl.worker_programs.plain_model.break_off import BreakOff

_CONNECT_S = 20.0
_CHUNK = 1 << 16
#: No honest answer is longer.
_LONGEST = 48 << 20
_LONGEST_ERROR = 1 << 20
_LATE = "no word came in time"


class CannotConnect(OSError):
    """Nobody listens there, its name is unknown, or its certificate is not valid."""


class BadAddress(CannotConnect):
    """The address, or that of the proxy, is not valid: to try again would not help."""


class BrokenOffAnswer(OSError):
    """The connection ended, or fell silent, before the answer was whole."""


class HttpAnswer:
    """An answer that is under way; a context, which closes the connection.

    Args:
        answer_s: How long the server may take to begin, and how long it may be silent.

    Raises:
        CannotConnect: There is no connection; as `BadAddress`: there never will be.
        BrokenOffAnswer: It ended before an answer began.
    """

    def __init__(self, url: str, headers: Mapping[str, str], body: bytes, breaker: BreakOff, answer_s: float) -> None:
        self._breaker = breaker
        self._is_late = False
        #: The connection's own is gone as soon as an answer has begun that is the last one of its connection.
        self._sock: socket.socket | None = None
        self._response: http.client.HTTPResponse | None = None
        try:
            self._connection, path, login = _connection(urlsplit(url))
        except (ValueError, http.client.HTTPException) as error:
            raise BadAddress(_words(error)) from error
        headers = {**headers, **login}
        self._stop = breaker.stopping(self._cut)
        self._stop.__enter__()
        try:
            self._send(path, headers, body, answer_s)
        except BaseException:
            self.close()
            raise

    def _send(self, path: str, headers: Mapping[str, str], body: bytes, answer_s: float) -> None:
        try:
            self._connection.connect()
        except ValueError as error:
            raise BadAddress(_words(error)) from error
        except (OSError, http.client.HTTPException) as error:
            self._breaker.check()
            raise CannotConnect(_words(error)) from error
        try:
            self._sock = self._connection.sock
            self._sock.settimeout(answer_s)
            self._breaker.check()
            with _after(answer_s, self._be_late):
                self._connection.request("POST" if body else "GET", path, body or None, dict(headers))
                self._response = self._connection.getresponse()
        except ValueError as error:
            raise BadAddress(_words(error)) from error
        except (OSError, http.client.HTTPException) as error:
            self._breaker.check()
            raise BrokenOffAnswer(_LATE if self._is_late else _words(error)) from error
        self.status = self._response.status
        self.headers = {name.lower(): value for name, value in self._response.getheaders()}

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection."""
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._stop.__exit__(None, None, None)
        if self._response is not None:
            self._response.close()
        self._connection.close()

    def chunks(self) -> Iterator[bytes]:
        """Yield the body as it comes.

        Raises:
            BrokenOffAnswer: It ended before it was whole, or is longer than any honest one.
            Interrupted: The breaker was tripped.
        """
        size, response = 0, self._response
        while response is not None:
            try:
                chunk = response.read1(_CHUNK)
            except (OSError, http.client.HTTPException, ValueError) as error:
                self._breaker.check()
                raise BrokenOffAnswer(_words(error)) from error
            self._breaker.check()
            if not chunk:
                return
            size += len(chunk)
            if size > _LONGEST:
                raise BrokenOffAnswer(f"the answer is longer than {_LONGEST} bytes")
            yield chunk

    def error_body(self) -> bytes:
        """Return the body of a refusal, as far as it comes."""
        body = bytearray()
        try:
            for chunk in self.chunks():
                body += chunk
                if len(body) > _LONGEST_ERROR:
                    break
        except BrokenOffAnswer:
            pass  # The status says enough.
        return bytes(body[:_LONGEST_ERROR])

    def _be_late(self) -> None:
        self._is_late = True
        self._cut()

    def _cut(self) -> None:
        """End the connection from another thread: whoever reads from it wakes."""
        sock = self._sock or self._connection.sock
        if sock is not None:
            try:
                socket.socket.shutdown(sock, socket.SHUT_RDWR)  # Not TLS's own goodbye, which would wait.
            except OSError:
                pass  # It has ended by itself.


@contextmanager
def _after(seconds: float, late: Callable[[], None]) -> Iterator[None]:
    """Call `late` if it takes too long: a time limit of the socket begins anew with each byte."""
    timer = threading.Timer(seconds, late)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _connection(parts: SplitResult) -> tuple[http.client.HTTPConnection, str, dict[str, str]]:
    """Return a connection that is not opened yet, the path to ask for, and what a proxy is told."""
    host, is_secure = parts.hostname or "", parts.scheme == "https"
    port = parts.port or (443 if is_secure else 80)
    proxy = _proxy_of(parts)
    if proxy is None:
        return _direct(host, port, is_secure=is_secure), parts.path, {}
    if proxy.scheme not in {"http", "https"}:
        raise BadAddress(f"a proxy of the kind {proxy.scheme} is not supported: name an http one, or set NO_PROXY")
    login, at = _proxy_login(proxy), (proxy.hostname or "", proxy.port or (443 if proxy.scheme == "https" else 80))
    if is_secure:
        tunnel = _direct(*at, is_secure=True)
        tunnel.set_tunnel(host, port, login)
        return tunnel, parts.path, {}
    return _direct(*at, is_secure=proxy.scheme == "https"), parts.geturl(), login


def _direct(host: str, port: int, *, is_secure: bool) -> http.client.HTTPConnection:
    if not is_secure:
        return http.client.HTTPConnection(host, port, timeout=_CONNECT_S)
    import ssl  # A local server needs none: 2 MB less, and 15 ms.

    return http.client.HTTPSConnection(host, port, timeout=_CONNECT_S, context=ssl.create_default_context())


def _proxy_of(parts: SplitResult) -> SplitResult | None:
    """Return the proxy of the environment for an address; None where it is asked directly."""
    if not any(name.lower().endswith("_proxy") and value for name, value in os.environ.items()):
        return None
    from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

    proxies = getproxies_environment()
    found = proxies.get(parts.scheme) or proxies.get("all")
    if not found or proxy_bypass_environment(parts.netloc, proxies):
        return None
    return urlsplit(found if "://" in found else f"http://{found}")


def _proxy_login(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    login = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {b64encode(login.encode()).decode()}"}


def _words(error: BaseException) -> str:
    """Return an error in words, without what it was about to send.

    >>> _words(ConnectionRefusedError(111, "Connection refused"))
    'Connection refused'
    """
    if isinstance(error, TimeoutError):
        return _LATE
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
