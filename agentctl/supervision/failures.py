"""When an agent failed last in a tree of tasks: an empty file for each, so that a start reads no log where none did.

The logs tell how often in a row; they are read where such a file is younger than the cool-down of a breaker.
"""

from __future__ import annotations

import contextlib
import os
import time

from agentctl.adapters.config import root_of_tree
from agentctl.adapters.files import read_quietly
from agentctl.adapters.taskdir import AgentDir, TaskDir

#: Between the times of the file system and of the log.
_SLACK_S = 5.0


def note_failure(agent: AgentDir) -> None:
    """Note that an agent has failed now; commands have no breaker."""
    spec = read_quietly(agent.spec)
    if not spec.get("order"):
        return
    folder = root_of_tree(agent.task).failures
    with contextlib.suppress(OSError):  # A full disk must not keep an end from being told.
        folder.mkdir(exist_ok=True)
        path = folder / str(spec.get("agent"))
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        os.utime(path)


def has_failed(root: TaskDir, agent: str, within_s: float) -> bool:
    """Tell whether an agent may have failed in the tree of `root` within so many seconds."""
    try:
        age = time.time() - os.stat(root.failures / agent).st_mtime
    except OSError:
        return False
    return age <= within_s + _SLACK_S
