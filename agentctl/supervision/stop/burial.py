"""How a burial begins: the undertaker is started as a program of its own, for a worker whose shim is gone."""

from __future__ import annotations

import os

from agentctl.adapters.detached import start_detached
from agentctl.adapters.taskdir import WorkerDir
from agentctl.adapters.treedir import tree_of
from agentctl.errors import AgentctlError
from agentctl.supervision.life.strangers import BURY, SHIM_SCRIPT
from agentctl.supervision.worker import environment

#: Where the undertaker says that it guards the worker; its end without a word means that it has failed.
READY_FD = 3


def begin_burial(worker: WorkerDir) -> None:
    """Start the undertaker in a process that outlives this one; returns once it guards the worker.

    It is a program of its own, and gets only those variables that say where environments wait: the sweep of a worker
    that asked for this cancel must not take it for one of its processes.

    Raises:
        AgentctlError: That process has failed.
    """
    ready_read, ready_write = os.pipe()
    environ = {key: os.environ[key] for key in environment.FOLDER_VARIABLES if key in os.environ}
    child = start_detached([SHIM_SCRIPT, BURY, worker.path], environ, {READY_FD: ready_write})
    os.close(ready_write)
    os.waitpid(child, 0)
    is_ready = os.read(ready_read, 1)
    os.close(ready_read)
    if not is_ready:
        what = f"nothing could be started to stop {worker.instance}, whose shim is gone"
        raise AgentctlError(what, hint=f"{tree_of(worker.task).shim_log} may say why; then try again")
