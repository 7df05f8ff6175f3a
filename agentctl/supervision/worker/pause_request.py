"""The request that a worker be paused, `pause.json`: it is obeyed as long as the file exists.

While the disk refuses to write or to remove it, what is wanted waits in memory and counts instead of the file; the
worker's shim writes it down as soon as the disk takes it.
"""

from __future__ import annotations

import contextlib
import os

from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import read_known, to_json, write_whole
from agentctl.adapters.taskdir import WorkerDir
from agentctl.errors import AgentctlError
from agentctl.lean import Any
from agentctl.supervision.worker import deferred
from agentctl.supervision.worker.deferrable import DeferrableRequest

#: Whether it is to be paused, in what waits in memory: the file says so by being there.
_PAUSED = "paused"


def put_pause_request(worker: WorkerDir, by: str, *, paused: bool) -> AgentctlError | OSError | None:
    """Write down that a worker is to be paused, or to go on.

    Returns:
        Why the disk refuses it, if it waits in memory.
    """
    return REQUEST.put(worker, {"by": by, "at": now_iso(), _PAUSED: paused})


def _write(worker: WorkerDir, body: dict[str, Any]) -> None:
    if body.get(_PAUSED):
        write_whole(worker.pause, to_json({key: value for key, value in body.items() if key != _PAUSED}))
    else:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(worker.pause)


#: The later one counts.
REQUEST = DeferrableRequest(deferred.PAUSE, _write, lambda _earlier, later: later)


def is_wanted(worker: WorkerDir) -> bool:
    """Return whether a worker is to be paused."""
    waiting = REQUEST.waiting(worker)
    return worker.pause.exists() if waiting is None else bool(waiting.get(_PAUSED))


def pause_request_of(worker: WorkerDir) -> dict[str, Any]:
    """Return what the request says; {} if a worker is not to be paused."""
    waiting = REQUEST.waiting(worker)
    if waiting is not None:
        return waiting if waiting.get(_PAUSED) else {}
    return read_known(worker.pause)
