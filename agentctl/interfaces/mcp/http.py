"""The server over streamable HTTP: on the loopback interface only, for clients with the token, never for web pages."""

from __future__ import annotations

import contextlib
import errno
import hmac
import os
import signal
import socket
import sys
from typing import Any, NoReturn

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from agentctl.adapters.files import write_whole
from agentctl.adapters.paths import FilePath
from agentctl.errors import AtTerminal, Refused
from agentctl.interfaces.mcp.server import PROGRESS_S, AgentctlServer
from agentctl.lean import NamedTuple
from agentctl.supervision.worker.environment import store_folder
from agentctl.tools.registry import Toolbox

HOST, PATH = "127.0.0.1", "/mcp"


_REFUSAL = {"error": "send the token: Authorization: Bearer TOKEN"}
#: With this header a client wants to resume a broken stream. That is not offered, and the library fails on it.
_RESUMPTION = b"last-event-id"


class WithToken:
    """Serves only requests that have the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._wanted = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] == "http":
            scheme, _, shown = dict(scope["headers"]).get(b"authorization", b"").partition(b" ")
            if scheme.lower() != b"bearer" or not hmac.compare_digest(shown.strip(), self._wanted):
                refusal = JSONResponse(_REFUSAL, status_code=401, headers={"WWW-Authenticate": "Bearer"})
                await refusal(scope, receive, send)
                return
            scope = {**scope, "headers": [one for one in scope["headers"] if one[0] != _RESUMPTION]}
        await self._app(scope, receive, send)


def listen(port: int) -> socket.socket:
    """Return a socket that listens at the port.

    Raises:
        Refused: The port is taken, or not allowed.
    """
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        is_taken = error.errno == errno.EADDRINUSE
        hint = "is a server of yours running already? else choose another port" if is_taken else "choose another port"
        raise Refused(
            f"cannot listen on port {port} of {HOST}: {error.strerror}", hint=AtTerminal(f"{hint}: --http PORT")
        ) from error


class Token(NamedTuple):
    """The secret that a client has to send, and the private file in memory that holds it."""

    text: str
    file: FilePath


def make_token(port: int) -> Token:
    """Return a new token for the server at a port. The caller must listen there already."""
    token = Token(os.urandom(32).hex(), store_folder() / f"mcp-{port}.token")
    write_whole(token.file, f"{token.text}\n".encode(), durable=False)
    return token


def make_app(toolbox: Toolbox, port: int, token: str, **settings: Any) -> ASGIApp:
    """Return the ASGI application."""
    made = AgentctlServer(toolbox, **settings)
    names = [f"{HOST}:{port}", f"localhost:{port}"]
    security = TransportSecuritySettings(allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names])
    app = made.server.streamable_http_app(streamable_http_path=PATH, host=HOST, transport_security=security)
    return WithToken(app, token)


def serve_http(
    toolbox: Toolbox, place: socket.socket, token: Token, *, call_s: float | None = None,
    progress_s: float = PROGRESS_S,
) -> None:  # fmt: skip
    """Serve until interrupted."""
    app = make_app(toolbox, place.getsockname()[1], token.text, call_s=call_s, progress_s=progress_s)
    signal.signal(signal.SIGTERM, _leave)  # uvicorn raises it again when it is done.
    try:
        uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False)).run(sockets=[place])
    finally:
        _forget(token)


def _leave(number: int, _frame: object) -> NoReturn:
    sys.exit(128 + number)


def _forget(token: Token) -> None:
    """Remove the token's file, if it is still this server's."""
    with contextlib.suppress(OSError):
        if token.file.read_text(encoding="ascii").strip() == token.text:
            os.unlink(token.file)
