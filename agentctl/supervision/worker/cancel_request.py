"""The request that a worker be ended, `cancel.json`: durable first, then told in the log.

While the disk refuses it, it waits in memory and counts as it would on disk; the worker's shim writes it down as soon
as the disk takes it.
"""

from __future__ import annotations

import contextlib

from agentctl.adapters import eventlog
from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import create_whole, read_json, read_known, to_json, write_whole
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain import events as ev
from agentctl.errors import AgentctlError, Damaged
from agentctl.lean import Any
from agentctl.supervision import failpoints
from agentctl.supervision.worker import deferred
from agentctl.supervision.worker.deferrable import DeferrableRequest
from agentctl.supervision.worker.spec import valid_grace


def put_cancel_request(worker: WorkerDir, by: str, grace_s: float | None = None) -> AgentctlError | OSError | None:
    """Write down that a worker is to be ended. A second request can only make the grace period shorter.

    Returns:
        Why the disk refuses it, if it waits in memory.

    Raises:
        FileNotFoundError: As `DeferrableRequest.put` does.
    """
    body: dict[str, Any] = {"by": by, "at": now_iso()}
    if grace_s is not None:
        body["graceSeconds"] = grace_s
    try:
        return REQUEST.put(worker, body)
    finally:
        failpoints.reached("cancel.after-request")


def _write(worker: WorkerDir, body: dict[str, Any]) -> None:
    grace_s = valid_grace(body)
    if not worker.cancel.exists() and create_whole(worker.cancel, to_json(body)):
        by = str(body.get("by"))
        event = ev.make_event(now_iso(), ev.CANCEL_REQUESTED, worker.task.id, by, {}, worker.instance)
        with contextlib.suppress(AgentctlError, OSError):  # The request is on disk; its event is only for readers.
            eventlog.append(worker.task.events, [event])
        return
    written = _written(worker)
    if grace_s is not None and ((asked := valid_grace(written)) is None or grace_s < asked):
        write_whole(worker.cancel, to_json({**written, "graceSeconds": grace_s}))


def _written(worker: WorkerDir) -> dict[str, Any]:
    try:
        return read_json(worker.cancel) or {}
    except Damaged:  # A worker has written something else there: it is cancelled all the same.
        return {}


def _combined(earlier: dict[str, Any], later: dict[str, Any]) -> dict[str, Any]:
    """Return the earlier request with the shorter grace period of the two."""
    asked = [grace for one in (earlier, later) if (grace := valid_grace(one)) is not None]
    return {**later, **earlier} | ({"graceSeconds": min(asked)} if asked else {})


REQUEST = DeferrableRequest(deferred.CANCEL, _write, _combined)


def is_asked(worker: WorkerDir) -> bool:
    """Return whether somebody has asked for a worker's end."""
    # Memory first: where the disk does not even say whether the file is there, the request counts all the same.
    return (deferred.are_any() and REQUEST.waiting(worker) is not None) or worker.cancel.exists()


def cancel_request_of(worker: WorkerDir) -> dict[str, Any] | None:
    """Return the request, with the shortest grace period that was asked for; None if nobody has asked for its end."""
    waiting = REQUEST.waiting(worker)
    written = read_known(worker.cancel) if worker.cancel.exists() else None
    if waiting is None or written is None:
        return waiting if written is None else written
    return _combined(written, waiting)


def asked_grace(worker: WorkerDir) -> float | None:
    """Return the grace period in a request to cancel a worker; None if there is none."""
    return valid_grace(cancel_request_of(worker) or {})


def asked_by(worker: WorkerDir, unknown: str = "user") -> str:
    """Return who has asked for a worker's end; `unknown` where that is not known."""
    return str((cancel_request_of(worker) or {}).get("by") or unknown)
