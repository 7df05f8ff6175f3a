"""The server over streamable HTTP: on the loopback alone, for who has the token, for pages of no web site."""

from __future__ import annotations

import hmac
import os
from typing import Any

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from agentctl.adapters.files import write_whole
from agentctl.adapters.paths import FilePath
from agentctl.mcp.server import PROGRESS_S, AgentctlServer
from agentctl.supervision.environment import store_folder
from agentctl.tools.registry import Toolbox

HOST, PATH = "127.0.0.1", "/mcp"


class WithToken:
    """Lets in who shows the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._wanted = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] == "http":
            shown = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(shown, self._wanted):
                refusal = JSONResponse({"error": "show the token: Authorization: Bearer TOKEN"}, status_code=401)
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)


def make_token(port: int) -> FilePath:
    """Put a new token into a private file in memory; return its path."""
    path = store_folder() / f"mcp-{port}.token"
    write_whole(path, os.urandom(32).hex().encode() + b"\n", durable=False)
    return path


def make_app(toolbox: Toolbox, port: int, token: str, **settings: Any) -> ASGIApp:
    """Return the application."""
    made = AgentctlServer(toolbox, **settings)
    names = [f"{HOST}:{port}", f"localhost:{port}"]
    security = TransportSecuritySettings(allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names])
    app = made.server.streamable_http_app(streamable_http_path=PATH, host=HOST, transport_security=security)
    return WithToken(app, token)


def serve(
    toolbox: Toolbox, port: int, token_file: FilePath, *, call_s: float | None = None, progress_s: float = PROGRESS_S
) -> None:
    """Serve until interrupted."""
    token = token_file.read_text(encoding="ascii").strip()
    app = make_app(toolbox, port, token, call_s=call_s, progress_s=progress_s)
    try:
        uvicorn.run(app, host=HOST, port=port, log_level="error", access_log=False)
    finally:
        os.unlink(token_file)
