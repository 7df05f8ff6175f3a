"""What `agentctl acp` runs: it checks the library, and serves one client until it goes away."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys

from agentctl.adapters.extras import install_command
from agentctl.errors import Refused
from agentctl.lean import TYPE_CHECKING

if TYPE_CHECKING:
    from agentctl.interfaces.editor.methods import EditorAgent, EditorOptions


def check_acp_library() -> None:
    """Raise `Refused` if the protocol's library is not installed."""
    from importlib.util import find_spec

    if find_spec("acp") is None:
        raise Refused("the Agent Client Protocol's library is not installed", hint=install_command("acp"))


def serve_editor(serving: EditorOptions) -> None:
    """Serve the client on standard input and output; return once it is gone. Workers that were started go on."""
    logging.basicConfig(level=logging.ERROR, stream=sys.stderr)
    asyncio.run(_serve(serving))


async def _serve(serving: EditorOptions) -> None:
    from agentctl.interfaces.editor.methods import EditorAgent

    editor = EditorAgent(serving)
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    serve = asyncio.create_task(editor.link.serve())
    stop = asyncio.create_task(stopped.wait())
    await asyncio.wait({serve, stop}, return_when=asyncio.FIRST_COMPLETED)
    await _leave(editor, serve, stop)


async def _leave(editor: EditorAgent, *tasks: asyncio.Task[object]) -> None:
    for task in tasks:
        task.cancel()
    with contextlib.suppress(ConnectionError):
        await editor.leave()
