"""Repairs or answers lines on standard input that are not messages, so that no client waits for an answer for ever."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from agentctl.domain.text.plaintext import whole_json

_ID = re.compile(r'"id"\s*:\s*(-?\d{1,18}|"(?:[^"\\]|\\.){0,200}")\s*[,}]')
#: How much of a broken line is searched for the id of its request, at either end.
_LOOKED_AT = 100_000


@asynccontextmanager
async def mended(reading: Any, writing: Any) -> AsyncIterator[Any]:
    """Yield a stream of what is read, without broken lines.

    The library drops a line that it cannot read, and its sender would wait for the answer for ever. Half of a character
    (which JavaScript sends for an emoji that was cut in the middle) becomes U+FFFD. Any other broken request gets an
    error, with its id if that can be found; a broken reply to one of our own requests counts as a failed reply.
    """
    sending, receiving = anyio.create_memory_object_stream[Any](0)

    async def pump() -> None:
        async with sending:
            async for item in reading:
                message = item
                if isinstance(item, Exception):
                    message = await _answered(item, writing)
                if message is not None:
                    await sending.send(message)

    async with receiving, anyio.create_task_group() as group:
        group.start_soon(pump)
        yield receiving
        group.cancel_scope.cancel()


async def _answered(error: Exception, writing: Any) -> SessionMessage | None:
    """Return the message in a broken line if it can be repaired; otherwise answer the line."""
    line = _line_of(error)
    if line is None or not line.strip():
        return None
    value, code = _value_in(line)
    message = _as_message(value)
    if message is not None:
        return SessionMessage(message)
    name = value.get("id") if isinstance(value, dict) else _id_in(line)
    is_named = isinstance(name, int | str) and not isinstance(name, bool)
    if isinstance(value, dict) and "method" in value and not is_named and "id" not in value:
        return None  # A notification gets no answer.
    error_data = types.ErrorData(code=code, message=_MESSAGES[code])
    reply = types.JSONRPCError(jsonrpc="2.0", id=name if is_named else None, error=error_data)
    if is_named and isinstance(value, dict) and "method" not in value and ("result" in value or "error" in value):
        return SessionMessage(reply)  # It is the reply to a request of ours.
    await writing.send(SessionMessage(reply))
    return None


_MESSAGES = {
    types.PARSE_ERROR: "Parse error: the line is not JSON, or nested too deeply, or too long",
    types.INVALID_REQUEST: "Invalid Request: the line is not a JSON-RPC message",
}


def _line_of(error: Exception) -> str | None:
    """Return the line that could not be read."""
    if not isinstance(error, ValidationError):
        return None
    for one in error.errors(include_url=False):
        if one["type"] == "json_invalid":
            return str(one["input"])
        # Each kind of message was tried; these errors hold the input as a whole.
        if (one["type"], len(one["loc"])) in (("missing", 2), ("model_type", 1)):
            return json.dumps(one["input"])
    return None


def _value_in(line: str) -> tuple[Any, int]:
    """Return the JSON in a line, and the error code if it is not a message."""
    try:
        return whole_json(json.loads(line)), types.INVALID_REQUEST
    except (ValueError, RecursionError):
        return None, types.PARSE_ERROR


def _as_message(value: Any) -> types.JSONRPCMessage | None:
    try:
        return types.jsonrpc_message_adapter.validate_python(value, by_name=False)
    except ValidationError:
        return None


def _id_in(line: str) -> Any:
    """Return what looks like the id of a request in a line that is not JSON."""
    ends = line if len(line) <= 2 * _LOOKED_AT else line[:_LOOKED_AT] + line[-_LOOKED_AT:]
    found = _ID.search(ends)
    return json.loads(found[1]) if found is not None else None
