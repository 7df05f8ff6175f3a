"""When each agent failed last in a tree of tasks: one file per agent, so that a start reads no log if none failed.

The logs show how often in a row it failed; they are read if such a file is younger than the cool-down of a breaker. It
has the time since the boot, a clock that nobody can set.
"""

from __future__ import annotations

import contextlib

from agentctl.adapters import processes
from agentctl.adapters.clock import since_boot
from agentctl.adapters.files import make_folder, number_in, read_known, to_json, write_whole
from agentctl.adapters.taskdir import TreeDir, WorkerDir
from agentctl.adapters.treedir import tree_of
from agentctl.domain.names import is_name
from agentctl.errors import AgentctlError


def note_failure(worker: WorkerDir) -> None:
    """Note that an agent has failed now; commands have no breaker."""
    spec = read_known(worker.spec)
    name = str(spec.get("agent"))
    if not spec.get("order") or not is_name(name):
        return
    folder = tree_of(worker.task).failures
    with contextlib.suppress(AgentctlError, OSError):  # A full disk must not keep an end from being published.
        make_folder(folder)
        value = {"boot": processes.boot_id(), "at": since_boot()}
        write_whole(folder / name, to_json(value), durable=False)


def failed_ago(tree: TreeDir, agent: str) -> float | None:
    """Return how long ago an agent failed last in the tree of `tree`; None if it did not since the boot."""
    path = tree.failures / agent
    at = number_in(path, "at") if path.exists() else None
    if at is None or read_known(path).get("boot") != processes.boot_id():
        return None
    ago = since_boot() - at
    return ago if ago >= 0 else None
