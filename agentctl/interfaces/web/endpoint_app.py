"""Carries out the request of an endpoint: in a thread, and told with the codes and hints of the command line."""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from urllib.parse import urlencode

import anyio
import anyio.from_thread
import anyio.to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from agentctl.adapters.breakable_thread import in_breakable_thread
from agentctl.errors import AgentctlError, BrokenOff, ExitCode
from agentctl.interfaces.web.endpoint import (
    CURSOR,
    PREFIX,
    CheckedRequest,
    Endpoint,
    JsonAnswer,
    RawAnswer,
    read_body,
)
from agentctl.interfaces.web.etags import etag_of, has_already
from agentctl.interfaces.web.gate import TooLarge
from agentctl.interfaces.web.json_bytes import json_bytes
from agentctl.interfaces.web.problems import is_foreseen, problem, problem_response
from agentctl.world_errors import INSTALLED_AGAIN, missing_part

EXIT_CODE = "Agentctl-Exit-Code"
#: So many requests are carried out at once; and so many that wait for workers.
_AT_ONCE, _WAITING = 16, 128
_LEAVES_S = 0.25
#: A body of so many bytes is parsed in less than a millisecond.
_PARSED_AT_ONCE = 1 << 16


class Carrying:
    """The threads in which requests are carried out.

    Args:
        record: Records a bug; returns where.
    """

    def __init__(self, record: Callable[[BaseException], str]) -> None:
        self._quick = anyio.CapacityLimiter(_AT_ONCE)
        self._unbounded = anyio.CapacityLimiter(math.inf)
        #: How many threads wait, or are about to notice that nobody waits for them any more.
        self._waiting = 0
        self._parser = ThreadPoolExecutor(1, thread_name_prefix="parser")
        self.record = record

    async def parse(self, data: bytes, parse: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        """Return the values of a request. A large one does not hold up the loop.

        All large ones are parsed by one thread: each thread keeps for itself the memory that it has needed.
        """
        if len(data) <= _PARSED_AT_ONCE:
            return parse()
        return await asyncio.get_running_loop().run_in_executor(self._parser, parse)

    def has_room_for(self, endpoint: Endpoint) -> bool:
        """Return whether one more may wait."""
        return not endpoint.waits or self._waiting < _WAITING

    async def run(self, endpoint: Endpoint, work: Callable[[], Response]) -> Response:
        """Return the result of some work, in a thread."""
        if not endpoint.waits:
            return await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._quick)
        self._waiting += 1
        loop = asyncio.get_running_loop()
        # Whoever takes it first counts this one off: the thread, or who no longer waits for it to begin.
        begun = threading.Lock()

        def counted() -> Response:
            if not begun.acquire(blocking=False):
                raise BrokenOff("the client has left")
            try:
                return work()
            finally:  # A limiter would count only until the client leaves.
                with contextlib.suppress(RuntimeError):  # The loop is closed.
                    loop.call_soon_threadsafe(self._one_less)

        try:
            return await anyio.to_thread.run_sync(counted, abandon_on_cancel=True, limiter=self._unbounded)
        finally:
            if begun.acquire(blocking=False):
                self._one_less()

    def _one_less(self) -> None:
        self._waiting -= 1


class EndpointApp:
    """The endpoints at one path, each for a method of its own."""

    def __init__(self, endpoints: Sequence[Endpoint], carrying: Carrying) -> None:
        self._endpoints = {one.method: one for one in endpoints}
        self._carrying = carrying

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        endpoint = self._endpoints.get(method)
        if endpoint is None:
            answer: Response | None = not_allowed(self._endpoints)
        else:
            answer = await self._answer(endpoint, Request(scope, receive, send), send)
        if answer is not None:
            await answer(scope, receive, send)

    async def _answer(self, endpoint: Endpoint, request: Request, send: Send) -> Response | None:
        """Return the answer; None if it was sent already, or nobody is there any more."""
        try:
            return await self._carry_out(endpoint, await request.body() if endpoint.changes else b"", request, send)
        except TooLarge:
            return TooLarge.response()
        except (ClientDisconnect, BrokenOff):
            return None
        except AgentctlError as error:
            return problem_response(error)
        except OSError as error:
            return problem_response(error) if is_foreseen(error) else bug(error, self._carrying.record)
        except Exception as error:  # noqa: BLE001 - the last place at which a bug can be reported clearly
            return bug(error, self._carrying.record)

    async def _carry_out(self, endpoint: Endpoint, data: bytes, request: Request, send: Send) -> Response | None:
        """Check and carry out a request, and encode its answer, in threads."""
        query = request.query_params.multi_items()
        values = await self._carrying.parse(
            data, lambda: endpoint.values_of(request.path_params, query, read_body(data) if endpoint.changes else None)
        )
        if not self._carrying.has_room_for(endpoint):
            return problem(503, f"{_WAITING} requests wait already", "ask again later")
        delivered: list[Any] = []

        async def give(value: Any) -> None:
            if await request.is_disconnected():
                raise BrokenOff("the client has left")
            answer = json_response(value, request)
            sent = bytes(answer.body)
            await send({"type": "http.response.start", "status": answer.status_code, "headers": answer.raw_headers})
            # Who leaves before the last byte has not had it; who leaves afterwards has.
            await send({"type": "http.response.body", "body": sent[:-1], "more_body": True})
            await asyncio.sleep(0)
            if await request.is_disconnected():
                raise BrokenOff("the client has left")
            delivered.append(value)
            await send({"type": "http.response.body", "body": sent[-1:], "more_body": False})

        def work(broken: int) -> Response:
            call = CheckedRequest(values, dict(request.headers), partial(_in_loop, give), broken)
            return _response(endpoint.carry_out(call), request)

        response = await in_breakable_thread(lambda one: self._until_left(endpoint, one, request), work)
        return None if delivered else response

    async def _until_left(self, endpoint: Endpoint, work: Callable[[], Response], request: Request) -> Response:
        """Return the result of the work; if it waits for workers and the client leaves, nobody waits any more."""
        if not endpoint.waits:
            return await self._carrying.run(endpoint, work)
        result: list[Response | Exception] = []

        async def run(scope: anyio.CancelScope) -> None:
            try:
                result.append(await self._carrying.run(endpoint, work))
            except Exception as error:  # noqa: BLE001 - raised again outside the group, which would wrap it
                result.append(error)
            scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(run, group.cancel_scope)
            while not await request.is_disconnected():  # noqa: ASYNC110 - the server has no event for it
                await anyio.sleep(_LEAVES_S)
            group.cancel_scope.cancel()
        if not result:
            raise BrokenOff("the client has left")
        if isinstance(result[0], Exception):
            raise result[0]
        return result[0]


def bug(error: Exception, record: Callable[[BaseException], str]) -> Response:
    """Record an unforeseen error, and return the answer that says so."""
    part = missing_part(error)
    if part is not None:
        return problem(503, part, INSTALLED_AGAIN)
    where = record(error)
    return problem(500, f"this is a bug in agentctl: {type(error).__name__}", f"the traceback is in {where}")


def _in_loop(give: Callable[[Any], Coroutine[Any, Any, None]], value: Any) -> None:
    anyio.from_thread.run(give, value)


def not_allowed(methods: Mapping[str, Any]) -> Response:
    """Return the answer to a method that a path does not have."""
    allowed = sorted({*methods, *({"HEAD"} if "GET" in methods else ())})
    return problem(
        405, f"only {', '.join(allowed)} can be used here", headers={"Allow": ", ".join(allowed)}, code=ExitCode.USAGE
    )


def _response(answer: JsonAnswer | RawAnswer, request: Request) -> Response:
    if isinstance(answer, RawAnswer):
        headers = dict(answer.headers)
        if not isinstance(answer.data, bytes):
            return StreamingResponse(answer.data, answer.status, headers, answer.media_type)
        if answer.media_type == "image/svg+xml":  # As a page of its own it may show itself, and do nothing.
            headers["Content-Security-Policy"] = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
        if answer.status == 200 and "ETag" not in headers:
            return _tagged(answer.data, request, headers, answer.media_type)
        return Response(answer.data, answer.status, headers, answer.media_type)
    headers = {} if answer.exit_code == ExitCode.DONE else {EXIT_CODE: str(int(answer.exit_code))}
    if answer.location is not None:
        headers["Location"] = PREFIX + answer.location
    if answer.next_page is not None:
        headers["Link"] = f'<{_after(request, answer.next_page)}>; rel="next"'
    return json_response(answer.value, request, headers, status=answer.status)


def _after(request: Request, cursor: str) -> str:
    """Return the path and query of a request, with another cursor."""
    query = [(key, text) for key, text in request.query_params.multi_items() if key != CURSOR]
    return f"{request.url.path}?{urlencode([*query, (CURSOR, cursor)])}"


def json_response(
    value: Any, request: Request, headers: Mapping[str, str] | None = None, *, status: int = 200
) -> Response:
    """Return a JSON document; what a client has already is not sent again."""
    data = value if isinstance(value, bytes) else json_bytes(value)
    if request.method not in {"GET", "HEAD"}:
        return Response(data, status, headers, "application/json")
    return _tagged(data, request, headers or {}, "application/json")


def _tagged(data: bytes, request: Request, headers: Mapping[str, str], media_type: str) -> Response:
    tag = etag_of(data)
    named = {**headers, "ETag": tag}
    if has_already(request.headers, tag):
        return Response(b"", 304, named)
    return Response(data, 200, named, media_type)
