"""Stands between the conformance suite and our server: shows the token, and turns the suite's tools into calls of ours.

The suite can show no token, and calls tools of its own that a server under test is to have. What it says of itself by
`Host` and `Origin` is renamed to the server's own; anything else that it puts there goes through as it is.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from tests.support import wait_until

Call = tuple[str, dict[str, Any]]
#: Of these the relay's connections have their own.
_OF_CONNECTION = frozenset({"content-length", "connection", "transfer-encoding", "accept-encoding"})


class Relay:
    """A relay to one server.

    Args:
        calls: The suite's tool -> ours, with its arguments; `{NAME}` in a text is the suite's argument of that name.
    """

    def __init__(self, port: int, server: int, token: str, calls: Mapping[str, Call]) -> None:
        self.url = f"http://127.0.0.1:{port}/mcp"
        self._client: httpx2.AsyncClient
        self._port, self._server, self._token, self._calls = port, server, token, calls

    @asynccontextmanager
    async def lives(self, _app: Starlette) -> AsyncIterator[None]:
        """Keep connections to the server as long as the relay serves."""
        async with httpx2.AsyncClient(timeout=None) as self._client:
            yield

    async def serve(self, request: Request) -> StreamingResponse:
        """Pass a request on, and its answer back."""
        headers = {name: value for name, value in request.headers.items() if name not in _OF_CONNECTION}
        for name in ("host", "origin"):
            if name in headers:
                headers[name] = headers[name].replace(f":{self._port}", f":{self._server}")
        headers["authorization"] = f"Bearer {self._token}"
        body = self._mapped(await request.body(), headers)
        asked = self._client.build_request(
            request.method, f"http://127.0.0.1:{self._server}/mcp", headers=headers, content=body
        )
        answer = await self._client.send(asked, stream=True)

        async def passed() -> AsyncIterator[bytes]:
            try:
                async for chunk in answer.aiter_raw():
                    yield chunk
            finally:
                await answer.aclose()

        told = {name: value for name, value in answer.headers.items() if name not in _OF_CONNECTION}
        return StreamingResponse(passed(), answer.status_code, told)

    def _mapped(self, body: bytes, headers: dict[str, str]) -> bytes:
        """Return a body in which the suite's tools are ours; the header that names the tool follows it."""
        try:
            message = json.loads(body)
        except ValueError:
            return body
        if not isinstance(message, dict):
            return body
        params = message.get("params")
        if isinstance(params, dict) and message.get("method") == "tools/call" and params.get("name") in self._calls:
            theirs = params["name"]
            params["name"], arguments = self._calls[theirs]
            params["arguments"] = _filled(arguments, params.get("arguments") or {})
            if headers.get("mcp-name") in (theirs, _encoded(theirs)):
                headers["mcp-name"] = params["name"]
        if isinstance(params, dict) and isinstance(params.get("inputResponses"), dict):
            for reply in params["inputResponses"].values():
                _name_the_field(reply)
        _name_the_field(message.get("result"))
        return json.dumps(message).encode()


def _filled(value: Any, given: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        return value.format_map({"seconds": 0, **given})
    if isinstance(value, dict):
        return {name: _filled(one, given) for name, one in value.items()}
    return [_filled(one, given) for one in value] if isinstance(value, list) else value


def _encoded(name: str) -> str:
    return f"=?base64?{base64.b64encode(name.encode()).decode()}?="


def _name_the_field(reply: Any) -> None:
    """Put the one thing that a form of the suite holds under the name that ours have."""
    if isinstance(reply, dict) and isinstance(reply.get("content"), dict) and len(reply["content"]) == 1:
        reply["content"] = {"answer": str(next(iter(reply["content"].values())))}


@contextmanager
def relayed(port: int, server: int, token: str, calls: Mapping[str, Call]) -> Iterator[str]:
    """Run a relay; return where it is."""
    relay = Relay(port, server, token, calls)
    app = Starlette(
        routes=[Route("/mcp", relay.serve, methods=["GET", "POST", "DELETE", "OPTIONS"])], lifespan=relay.lives
    )
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error", timeout_graceful_shutdown=1)
    served = uvicorn.Server(config)
    thread = threading.Thread(target=served.run)
    thread.start()
    try:
        wait_until(lambda: served.started, what="the relay to serve")
        yield relay.url
    finally:
        served.should_exit = True
        thread.join(10)
