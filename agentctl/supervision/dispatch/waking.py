"""Makes sure that a tree of tasks has a waker while a worker in its queue waits for an account."""

from __future__ import annotations

import contextlib
import os

from agentctl.adapters.detached import start_detached
from agentctl.adapters.locks import is_alive_held
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import TreeDir
from agentctl.errors import AgentctlError
from agentctl.supervision.life.strangers import SHIM_SCRIPT, WAKE


def see_to_wake(tree: TreeDir, folder: FilePath) -> None:
    """Start the waker of a tree, unless it has one.

    Args:
        folder: Where the environments of queued workers wait.
    """
    with contextlib.suppress(AgentctlError, OSError):  # No process left, a full disk: the next dispatch tries.
        if not is_alive_held(tree.waker):
            _start(tree, folder)


def _start(tree: TreeDir, folder: FilePath) -> None:
    """Start the waker as a program of its own, without this environment, so that no worker's sweep takes it."""
    os.waitpid(start_detached([SHIM_SCRIPT, WAKE, folder, tree.path], {}), 0)
