"""At stake: an answer that is compressed is the same answer; and what must not be compressed is not."""

from __future__ import annotations

import asyncio
import gzip
import os
import zlib
from collections.abc import Mapping
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from agentctl.interfaces.web.compression import LEAST, Compressed, _Sending

JSON = {"content-type": "application/json", "etag": '"x"'}
LONG = b'{"a": "' + b"abc" * LEAST + b'"}'


class Got:
    """What a client has got."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        self.status = messages[0]["status"]
        self.headers = Headers(raw=messages[0]["headers"])
        self.parts = [one["body"] for one in messages[1:]]
        self.body = b"".join(self.parts)


def got(
    parts: list[bytes], headers: Mapping[str, str], *, accepts: str = "gzip", status: int = 200, method: str = "GET",
    path: str = "/api/v1/tasks", is_open: bool = False,
) -> Got:  # fmt: skip
    """Return what becomes of an answer in some parts.

    Args:
        is_open: Its end has not come yet.
    """
    messages: list[dict[str, Any]] = []

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": raw})
        for number, part in enumerate(parts, 1):
            await send({"type": "http.response.body", "body": part, "more_body": is_open or number < len(parts)})

    async def keep(message: Any) -> None:
        messages.append(dict(message))

    async def nothing() -> Any:
        raise AssertionError

    asked = [] if not accepts else [(b"accept-encoding", accepts.encode())]
    scope = {"type": "http", "method": method, "path": path, "headers": asked}
    asyncio.run(Compressed(app, ("/session", "/answer/"))(scope, nothing, keep))
    return Got(messages)


def with_length(parts: list[bytes], headers: Mapping[str, str] = JSON) -> dict[str, str]:
    return {**headers, "content-length": str(sum(map(len, parts)))}


@given(st.lists(st.binary(max_size=3 * LEAST), min_size=1, max_size=5), st.booleans())
def test_it_is_the_same_document(parts: list[bytes], has_length: bool) -> None:
    answer = got(parts, with_length(parts) if has_length else JSON)
    is_packed = answer.headers.get("content-encoding") == "gzip"
    assert (gzip.decompress(answer.body) if is_packed else answer.body) == b"".join(parts)
    assert not has_length or is_packed == (sum(map(len, parts)) >= LEAST)
    assert answer.headers["vary"] == "Accept-Encoding"
    assert answer.headers["etag"] == ('W/"x"' if is_packed else '"x"')
    if "content-length" in answer.headers:
        assert int(answer.headers["content-length"]) == len(answer.body)


@given(st.lists(st.binary(min_size=1, max_size=300), min_size=1, max_size=8))
def test_each_message_of_a_stream_can_be_read_at_once(parts: list[bytes]) -> None:
    answer = got(parts, {"content-type": "text/event-stream; charset=utf-8"}, is_open=True)
    assert answer.headers["content-encoding"] == "gzip"
    reader = zlib.decompressobj(16 + zlib.MAX_WBITS)
    assert [reader.decompress(part) for part in answer.parts] == parts


@pytest.mark.parametrize(
    "answer",
    [
        got([LONG], with_length([LONG]), accepts=""),
        got([LONG], with_length([LONG]), accepts="br, gzip;q=0"),
        got([LONG], with_length([LONG]), method="HEAD"),
        got([LONG], with_length([LONG]), path="/session"),
        got([LONG], with_length([LONG]), path="/answer/signed"),
        got([LONG], with_length([LONG], {"content-type": "image/png"})),
        got([LONG], with_length([LONG], {"content-type": "text/plain", "accept-ranges": "bytes"})),
        got([LONG], with_length([LONG], {**JSON, "content-encoding": "gzip"})),
        got([LONG], with_length([LONG]), status=206),
        got([b"{}"], with_length([b"{}"])),
    ],
    ids=["asked for nothing", "refuses", "HEAD", "login", "link", "picture", "file", "done", "part", "short"],
)
def test_what_is_sent_as_it_is(answer: Got) -> None:
    assert answer.body in {LONG, b"{}"}
    assert int(answer.headers["content-length"]) == len(answer.body)
    assert not answer.headers.get("etag", "").startswith("W/")


def test_what_two_tasks_send_comes_in_one_order() -> None:
    """A large part is packed in a thread; a sign of life that another task sends meanwhile comes behind it."""
    sent: list[bytes] = []

    async def take(message: Any) -> None:
        sent.append(message.get("body", b""))

    async def send() -> None:
        answer = _Sending(take, is_wanted=True)
        headers = [(b"content-type", b"text/event-stream")]
        await answer.send({"type": "http.response.start", "status": 200, "headers": headers})
        async with anyio.create_task_group() as group:
            for body in (os.urandom(1 << 20).hex().encode(), b": ping\n\n", b"data: last\n\n"):
                group.start_soon(answer.send, {"type": "http.response.body", "body": body, "more_body": True})

    anyio.run(send)
    whole = zlib.decompressobj(31).decompress(b"".join(sent))
    assert whole.endswith(b": ping\n\ndata: last\n\n")
    assert len(whole) == (2 << 20) + 20
