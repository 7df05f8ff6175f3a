"""The request that a worker be ended, `cancel.json`: durable first, then told in the log."""

from __future__ import annotations

import contextlib

from agentctl.adapters import eventlog
from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import create_whole, make_folder, read_quietly, to_json, write_whole
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain import events as ev
from agentctl.errors import AgentctlError
from agentctl.lean import Any
from agentctl.supervision import failpoints
from agentctl.supervision.worker.spec import asked_grace


def put_request(worker: WorkerDir, by: str, grace_s: float | None = None) -> None:
    """Write down that a worker is to be ended. A second request can only make the grace period shorter."""
    body: dict[str, Any] = {"by": by, "at": now_iso()}
    if grace_s is not None:
        body["graceSeconds"] = grace_s
    make_folder(worker.path)  # It may have been removed while the worker ran.
    if not worker.cancel.exists() and create_whole(worker.cancel, to_json(body)):
        event = ev.make_event(now_iso(), ev.CANCEL_REQUESTED, worker.task.id, by, {}, worker.instance)
        with contextlib.suppress(AgentctlError):  # The request is on disk; its event is only for readers.
            eventlog.append(worker.task.events, [event])
    elif grace_s is not None and ((asked := asked_grace(worker)) is None or grace_s < asked):
        write_whole(worker.cancel, to_json({**read_quietly(worker.cancel), "graceSeconds": grace_s}))
    failpoints.reached("cancel.after-request")
