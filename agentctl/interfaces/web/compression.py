"""Answers are sent compressed to whoever takes that, a stream too, each message of which arrives at once.

The library's own middleware compresses no stream, gives both forms of a document one strong tag, and takes parts of
files for whole ones ([decision 50](../../../docs/decisions/0050-the-interface-as-a-contract.md)).
"""

from __future__ import annotations

import re
import zlib

import anyio
import anyio.to_thread
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Less than this does not become a packet less.
LEAST = 1 << 10
#: More than this is compressed in a thread: it takes a millisecond or more.
_IN_THREAD = 1 << 16
_KINDS = re.compile(r"text/|application/(problem\+)?json\b|image/svg\+xml")
_STREAM = "text/event-stream"
#: A level at which a fleet of thousands takes some milliseconds. A stream keeps its state for as long as it is open: a
#: window of 8 KiB keeps that at 100 KB.
_LEVEL = 4
_WINDOW, _STREAM_WINDOW, _GZIP = 15, 13, 16
_MEMORY, _STREAM_MEMORY = 8, 7
_QUALITY = re.compile(r"\s*(gzip|\*)\s*(?:;\s*q\s*=\s*(0(?:\.\d*)?|1(?:\.0*)?)\s*)?", re.IGNORECASE)


def accepts_gzip(headers: Headers) -> bool:
    """Return whether a client takes gzip.

    >>> [accepts_gzip(Headers({"accept-encoding": one})) for one in ("gzip, br", "*", "gzip;q=0, *", "identity", "")]
    [True, True, False, False, False]
    """
    found: dict[str, bool] = {}
    for one in headers.get("accept-encoding", "").split(","):
        if (word := _QUALITY.fullmatch(one)) is not None:
            found.setdefault(word[1].lower(), float(word[2] or 1) > 0)
    return found.get("gzip", found.get("*", False))


class Compressed:
    """An application whose answers are compressed.

    Args:
        never: Beginnings of paths whose answers hold a secret beside what somebody has sent. From the length of such an
            answer, whoever sees it encrypted could guess the secret.
    """

    def __init__(self, app: ASGIApp, never: tuple[str, ...]) -> None:
        self._app, self._never = app, never

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] == "http" and not str(scope["path"]).startswith(self._never):
            send = _Sending(send, is_wanted=accepts_gzip(Headers(scope=scope)) and scope["method"] != "HEAD").send
        await self._app(scope, receive, send)


class _Sending:
    """Sends one answer."""

    def __init__(self, send: Send, *, is_wanted: bool) -> None:
        self._send, self._is_wanted = send, is_wanted
        self._begin: Message | None = None
        self._packer: zlib._Compress | None = None
        self._is_stream = False
        #: Its head is sent, and nothing of it is packed: the rest goes as it comes.
        self._passes = False
        #: A stream and its signs of life are sent by two tasks of the library, and what is packed first goes first.
        self._turn = anyio.Lock()

    async def send(self, message: Message) -> None:
        """Send a part of the answer. Its head waits for the first part of the body, which may be all of it."""
        if self._passes:
            await self._send(message)
            return
        async with self._turn:
            await self._send_next(message)

    async def _send_next(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._begin = message
        elif message["type"] != "http.response.body":
            await self._send(message)
        elif self._begin is not None:
            begin, self._begin = self._begin, None
            await self._first(begin, message)
        else:
            await self._send(message if self._packer is None else await self._packed(self._packer, message))

    async def _first(self, begin: Message, message: Message) -> None:
        headers = MutableHeaders(raw=begin["headers"])
        if _may_be_compressed(begin["status"], headers):
            headers.add_vary_header("Accept-Encoding")
            self._is_stream = headers.get("content-type", "").startswith(_STREAM)
            length = int(headers.get("content-length", LEAST if message.get("more_body") else 0))
            if self._is_wanted and (self._is_stream or length >= LEAST):
                window, memory = (_STREAM_WINDOW, _STREAM_MEMORY) if self._is_stream else (_WINDOW, _MEMORY)
                self._packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP + window, memory)
                message = await self._packed(self._packer, message)
                _tell(headers, None if message.get("more_body") else len(message["body"]))
        await self._send({**begin, "headers": headers.raw})
        await self._send(message)
        self._passes = self._packer is None

    async def _packed(self, packer: zlib._Compress, message: Message) -> Message:
        """Return a part of the body, compressed; of a stream, so that the client can read all of it at once."""
        body, is_more = message.get("body", b""), message.get("more_body", False)
        how = zlib.Z_FINISH if not is_more else zlib.Z_SYNC_FLUSH if self._is_stream else zlib.Z_NO_FLUSH
        if len(body) > _IN_THREAD:
            packed = await anyio.to_thread.run_sync(_pack, packer, body, how)
        else:
            packed = _pack(packer, body, how)
        return {**message, "body": packed}


def _pack(packer: zlib._Compress, body: bytes, how: int) -> bytes:
    return packer.compress(body) + (b"" if how == zlib.Z_NO_FLUSH else packer.flush(how))


def _may_be_compressed(status: int, headers: Headers) -> bool:
    """Return whether an answer is one that is worth it: no part of a file, nor what parts can be had of."""
    if status in {204, 206, 304, 416} or "accept-ranges" in headers or "content-encoding" in headers:
        return False
    return _KINDS.match(headers.get("content-type", "")) is not None


def _tell(headers: MutableHeaders, length: int | None) -> None:
    """Have the headers say that an answer is compressed; its tag is that of the same document in another form."""
    headers["Content-Encoding"] = "gzip"
    if "etag" in headers and not headers["etag"].startswith("W/"):
        headers["ETag"] = f"W/{headers['etag']}"
    if length is None:
        del headers["content-length"]
    else:
        headers["Content-Length"] = str(length)
