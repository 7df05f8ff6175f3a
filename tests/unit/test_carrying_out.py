"""At stake: an end counts as given once its client has had the whole answer, and not before."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import NoReturn

import pytest
from starlette.types import Message

from agentctl.interfaces.web.endpoint import CheckedRequest, Endpoint, JsonAnswer
from agentctl.interfaces.web.endpoint_app import Carrying, EndpointApp
from tests.support import wait_until

VALUE = {"name": "a"}


def bug(error: BaseException) -> NoReturn:
    raise error


class Client:
    """Takes so many messages of an answer, and leaves."""

    def __init__(self, leaves_after: int) -> None:
        self._left = asyncio.Event()
        self._leaves_after = leaves_after
        self.sent: list[Message] = []

    def leave(self) -> None:
        self._left.set()

    async def receive(self) -> Message:
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.sent.append(message)
        if len(self.sent) == self._leaves_after:
            self._left.set()


def hands_over(ends: list[str], is_over: threading.Event) -> Callable[[CheckedRequest], JsonAnswer]:
    """Return what hands a value over, and notes how that ended."""

    def carry_out(request: CheckedRequest) -> JsonAnswer:
        try:
            request.deliver(VALUE)
            ends.append("given")
        except BaseException as error:
            ends.append(type(error).__name__)
            raise
        finally:
            is_over.set()
        return JsonAnswer(VALUE)

    return carry_out


@pytest.mark.parametrize(
    ("leaves_after", "end", "body"),
    [(1, "BrokenOff", b'{"name":"a"'), (2, "BrokenOff", b'{"name":"a"'), (3, "given", b'{"name":"a"}')],
)
def test_who_leaves_before_the_last_byte_has_had_nothing(leaves_after: int, end: str, body: bytes) -> None:
    ends: list[str] = []
    is_over = threading.Event()

    async def ask() -> Client:
        client = Client(leaves_after)
        endpoint = Endpoint("GET", "/x", "x", "X.", hands_over(ends, is_over), waits=True)
        scope = {"type": "http", "method": "GET", "path": "/x", "query_string": b"", "headers": [], "path_params": {}}
        await EndpointApp([endpoint], Carrying(bug))(scope, client.receive, client.send)
        assert await asyncio.to_thread(is_over.wait, 30)
        return client

    client = asyncio.run(ask())
    assert ends == [end]
    assert b"".join(one.get("body", b"") for one in client.sent) == body


def test_a_client_that_has_left_already_takes_no_place() -> None:
    async def ask() -> bool:
        carrying = Carrying(bug)
        endpoint = Endpoint("GET", "/x", "x", "X.", lambda _: JsonAnswer(VALUE), waits=True)
        scope = {"type": "http", "method": "GET", "path": "/x", "query_string": b"", "headers": [], "path_params": {}}
        for _ in range(200):
            client = Client(0)
            client.leave()
            await EndpointApp([endpoint], carrying)(scope, client.receive, client.send)
        await asyncio.to_thread(wait_until, lambda: carrying._waiting == 0, what="the places to be free again")
        return carrying.has_room_for(endpoint)

    assert asyncio.run(ask())
