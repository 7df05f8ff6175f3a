"""The protocol's messages on standard input and output, which are for them alone.

What is not a message is answered with an error, and harms nothing. Reading and writing are done in a thread each: a
client that does not read holds up whoever tells it something, and takes no memory here.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from agentctl.adapters.descriptors import read_patiently, write_patiently
from agentctl.adapters.lines import TOO_LONG, LineBuffer
from agentctl.domain.text.nesting import is_too_deep
from agentctl.domain.text.plaintext import whole

_CHUNK = 1 << 16
#: In bytes. A longer line is refused.
_LONGEST = 64 << 20
PARSE_ERROR, INVALID_REQUEST = -32700, -32600

Message = dict[str, Any]


class Stdio:
    """A transport of the library.

    Args:
        heard: Takes each message first, and returns whether it is dealt with.
    """

    def __init__(self, heard: Callable[[Message], bool]) -> None:
        self._heard = heard
        # Whatever prints to descriptor 1 from here on, prints to standard error.
        self._in, self._out = os.dup(0), os.dup(1)
        os.dup2(2, 1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        self._reading, self._writing = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
        self._buffer = LineBuffer(_LONGEST)
        self._lines: deque[bytes] = deque()
        self._is_over = False

    async def receive(self) -> Message | None:
        """Return the next message; None at the end of input."""
        while True:
            while self._lines:
                message = await self._message(self._lines.popleft())
                if message is not None and not self._heard(message):
                    return message
            if self._is_over:
                return None
            await self._read()

    async def _read(self) -> None:
        try:
            chunk = await asyncio.get_running_loop().run_in_executor(self._reading, read_patiently, self._in, _CHUNK)
        except OSError:
            chunk = b""
        self._is_over = not chunk
        self._lines.extend(self._buffer.feed(chunk or b"\n"))

    async def _message(self, line: bytes) -> Message | None:
        """Return the message in a line; an error is sent for anything else."""
        if line == TOO_LONG:
            await self._refuse(None, PARSE_ERROR, "this line is longer than 64 MiB")
            return None
        if not line.strip():
            return None
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            await self._refuse(None, PARSE_ERROR, "this line is not JSON")
            return None
        if not isinstance(value, dict) or is_too_deep(value):
            await self._refuse(None, INVALID_REQUEST, "a message is one JSON object, and not nested too deeply")
            return None
        has_id = isinstance(value.get("id"), int | str)
        if "method" not in value:  # A reply: an answer to a broken one could go to and fro for ever.
            is_error = "error" in value and not isinstance(value["error"], dict)
            return (value | {"error": {}} if is_error else value) if has_id else None
        if ("id" in value and not has_id) or not isinstance(value["method"], str):
            await self._refuse(None, INVALID_REQUEST, "the id must be a number or a text, and the method a text")
            return None
        return value

    async def _refuse(self, name: object, code: int, message: str) -> None:
        await self.send({"jsonrpc": "2.0", "id": name, "error": {"code": code, "message": message}})

    async def send(self, message: Message) -> None:
        """Send a message.

        Raises:
            ConnectionError: Nobody reads any more.
        """
        data = whole(json.dumps(message, ensure_ascii=False, separators=(",", ":"))).encode() + b"\n"
        try:
            await asyncio.get_running_loop().run_in_executor(self._writing, write_patiently, self._out, data)
        except OSError as error:
            raise ConnectionError("the client no longer reads") from error

    async def close(self) -> None:
        """Read and write no more; a thread that waits is left behind."""
        self._is_over = True
        for thread in (self._reading, self._writing):
            thread.shutdown(wait=False, cancel_futures=True)
