"""The empty row of `list`, from which each row is made."""

from __future__ import annotations

from agentctl.domain.states import Status
from agentctl.lean import TYPE_CHECKING

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import WorkerRow

#: A row of which nothing is known: each row is made from it. Copying it and filling in the rest is faster than
#: a literal with all keys (12.8 ms instead of 16.1 for 10,000 workers).
BLANK: WorkerRow = {
    "agentInstance": "", "agent": "", "status": Status.QUEUED, "reason": None, "message": None, "lastLine": None,
    "pid": None,
    "attempt": 1, "paused": False, "stalled": False, "parked": False, "awaitsAccount": None, "driver": None,
    "permissions": None,
    "usage": None, "agentId": None, "health": None, "parent": None, "depth": 0, "queuedAt": None, "startedAt": None,
    "endedAt": None, "durationSeconds": None, "exitCode": None, "signal": None, "progress": None, "survivors": (),
    "awaitsChildren": False, "uncollected": 0, "command": "", "askedBelow": 0,
}  # fmt: skip
