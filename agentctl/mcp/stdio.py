"""The server on standard input and output: it serves one client, and leaves when that closes its end."""

from __future__ import annotations

import logging

import anyio
from mcp.server.stdio import stdio_server

from agentctl.mcp.server import PROGRESS_S, AgentctlServer
from agentctl.tools.registry import Toolbox


def serve(toolbox: Toolbox, *, call_s: float | None = None, progress_s: float = PROGRESS_S) -> None:
    """Serve until standard input ends. Whatever was started goes on."""
    logging.basicConfig(level=logging.ERROR)
    anyio.run(_serve, toolbox, call_s, progress_s)


async def _serve(toolbox: Toolbox, call_s: float | None, progress_s: float) -> None:
    made = AgentctlServer(toolbox, call_s=call_s, progress_s=progress_s)
    async with stdio_server() as (reading, writing):
        await made.server.run(reading, writing, made.server.create_initialization_options())
