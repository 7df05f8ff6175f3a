"""Prepares the first answers of agentctl's MCP server for an agent, while the agent's program starts.

Finding out which tools there are takes longer than the program can wait without being slowed down. So another process
writes the answers into a file and exits, and the server reads that file. Only this process holds the file's lock, which
shows the server whether to wait. If the process died or was not started, the server works out the answers itself.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import threading
from collections.abc import Mapping

from agentctl.adapters.opening import open_plain
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.agent.driver_names import PLAIN
from agentctl.domain.agent.own_tools import OFFER, OFFER_VARIABLE, SERVER
from agentctl.drivers.order import Order
from agentctl.lean import Any

#: The agent's own program has a higher priority.
_NICENESS = 10


class Offering:
    """The process that prepares those answers, if the order has agentctl's server."""

    def __init__(self, worker: WorkerDir, order: Order, environ: Mapping[str, str]) -> None:
        self._maker: subprocess.Popen[bytes] | None = None
        server = order.mcp_servers.get(SERVER, {})
        if server.get("env", {}).get(OFFER_VARIABLE) == str(worker.offer):
            with contextlib.suppress(OSError):  # No disk space or no process left: the server does without.
                self._begin(worker, order, server, environ)

    def _begin(self, worker: WorkerDir, order: Order, server: Mapping[str, Any], environ: Mapping[str, str]) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(worker.offer)  # Left by an earlier attempt.
        file = open_plain(worker.offer, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._maker = subprocess.Popen(
                [server["command"], *server["args"], OFFER], env={**environ, **server["env"]},
                stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            if order.driver != PLAIN:  # That one's program is started sooner than this is done, and waits for it.
                os.setpriority(os.PRIO_PROCESS, self._maker.pid, _NICENESS)
        finally:
            os.close(file)
        threading.Thread(target=self._maker.wait, daemon=True).start()

    def end(self) -> None:
        """Stop the process, so that the agent leaves nothing behind."""
        if self._maker is not None:
            self._maker.kill()
            self._maker.wait()
