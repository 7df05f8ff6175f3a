"""The server on standard input and output: it serves one client, and leaves when that closes its end."""

from __future__ import annotations

import logging
import signal

import anyio
from mcp.server.stdio import stdio_server

from agentctl.mcp import lines
from agentctl.mcp.server import PROGRESS_S, AgentctlServer
from agentctl.tools.registry import Toolbox


def serve(toolbox: Toolbox, *, call_s: float | None = None, progress_s: float = PROGRESS_S) -> None:
    """Serve until standard input ends, or an interrupt. Whatever was started goes on."""
    logging.basicConfig(level=logging.ERROR)
    # Standard input is read in a thread that only its end wakes: an exception would wait for that in vain.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        anyio.run(_serve, toolbox, call_s, progress_s)
    except* BrokenPipeError:
        pass  # The client reads no more: it is gone.


async def _serve(toolbox: Toolbox, call_s: float | None, progress_s: float) -> None:
    made = AgentctlServer(toolbox, call_s=call_s, progress_s=progress_s)
    async with stdio_server() as (reading, writing), lines.mended(reading, writing) as whole:
        await made.server.run(whole, writing, made.server.create_initialization_options())
