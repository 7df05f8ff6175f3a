"""The first answers of an agent's own server are got ready while the agent's program starts.

To find out which tools there are takes longer than the program waits without being slowed down. So a process beside it
writes them into a file, and leaves; the server reads that. The lock of the file, which only that process holds, tells
the server whether to wait for it: where the process died, or none was started, the server finds out by itself.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import threading
from collections.abc import Mapping

from agentctl.adapters.opening import open_plain
from agentctl.adapters.taskdir import AgentDir
from agentctl.domain.offers import OFFER
from agentctl.drivers.order import Order
from agentctl.operations.handing import SERVER, is_ours


def offer_ahead(agent: AgentDir, order: Order, environ: Mapping[str, str]) -> None:
    """Have the answers of the order's server got ready, where it has ours."""
    server = order.mcp_servers.get(SERVER)
    if server is None or not is_ours(server):
        return
    with contextlib.suppress(OSError):  # No room, no process: the server does without.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(agent.offer)  # Of an earlier attempt.
        file = open_plain(agent.offer, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            maker = subprocess.Popen(
                [server["command"], *server["args"], OFFER], env={**environ, **server.get("env", {})},
                stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        finally:
            os.close(file)
        threading.Thread(target=maker.wait, daemon=True).start()
