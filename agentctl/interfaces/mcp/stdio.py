"""The server on standard input and output: it serves one client, and ends when the client closes its end."""

from __future__ import annotations

import logging
import signal
from collections.abc import AsyncIterator
from typing import Any

import anyio
import mcp_types as types
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

from agentctl.interfaces.mcp import repaired_lines
from agentctl.interfaces.mcp.early_answers import OpenedConversation
from agentctl.interfaces.mcp.server import PROGRESS_S, AgentctlServer
from agentctl.tools.registry import Toolbox


def serve_stdio(
    toolbox: Toolbox, begun: OpenedConversation, *, call_s: float | None = None, progress_s: float = PROGRESS_S
) -> None:
    """Serve until standard input ends, or an interrupt. Workers that were started go on.

    Args:
        begun: What was read from standard input, and answered, before.
    """
    logging.basicConfig(level=logging.ERROR)
    # Standard input is read in a thread that wakes only at its end: an exception would wait for that for ever.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        anyio.run(_serve, toolbox, begun, call_s, progress_s)
    except* BrokenPipeError:
        pass  # The client no longer reads: it is gone.


async def _serve(toolbox: Toolbox, begun: OpenedConversation, call_s: float | None, progress_s: float) -> None:
    made = AgentctlServer(toolbox, call_s=call_s, progress_s=progress_s)
    async with stdio_server() as (reading, writing):
        rest = _RestOfAnswers(writing, begun.answered)
        async with repaired_lines.mended(_after(begun.lines, reading), rest) as whole:
            await made.server.run(whole, rest, made.server.create_initialization_options())


async def _after(begun: list[bytes], reading: Any) -> AsyncIterator[Any]:
    """Yield the lines that were read before as the library's messages, then what the library reads."""
    for line in begun:
        try:
            text = line.decode("utf-8", "replace")
            yield SessionMessage(types.jsonrpc_message_adapter.validate_json(text, by_name=False))
        except ValueError as error:
            yield error
    async for item in reading:
        yield item


class _RestOfAnswers:
    """A stream for writing that leaves out the one answer that the client already has."""

    def __init__(self, writing: Any, answered: int | str | None) -> None:
        self._writing, self._answered = writing, answered

    async def send(self, item: SessionMessage) -> None:
        message = item.message
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError) and self._is_known(message.id):
            self._answered = None
        else:
            await self._writing.send(item)

    def _is_known(self, name: object) -> bool:
        return self._answered is not None and name == self._answered

    async def aclose(self) -> None:
        await self._writing.aclose()

    async def __aenter__(self) -> _RestOfAnswers:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
