"""Sub-agents of a program that a person runs by hand, as `hook` noted them: shown beside the workers, but not ours."""

from __future__ import annotations

import contextlib

from agentctl.adapters.opening import OddFile
from agentctl.adapters.taskdir import TaskDir
from agentctl.domain.names import slug
from agentctl.domain.states import Status
from agentctl.domain.worker_row import BLANK
from agentctl.lean import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import WorkerRow

#: How many of them are shown, the newest ones.
_MOST = 50
_ENDS = {"completed": Status.COMPLETED, "failed": Status.FAILED, "cancelled": Status.CANCELLED}


def observed_rows(task: TaskDir) -> list[WorkerRow]:
    """Return a row for each observed sub-agent, like those of `list`; `observed` is true in it."""
    if not task.observed.exists():
        return []
    from agentctl.adapters.activitylog import ActivityReader  # Few tasks have any.
    from agentctl.domain.activity.rows import read_line

    found: dict[bytes, WorkerRow] = {}
    with contextlib.suppress(OddFile):  # A link, a FIFO or the like counts as empty.
        for line in (line for block in ActivityReader(task.observed).blocks() for line in block.splitlines()):
            row = read_line(line, 0)
            if row is not None and row.kind == "agent":
                _take(found, row.id, row.at.decode(errors="replace"), row.phase == "end", row.fields)
    return list(found.values())[-_MOST:]


def observed_row(task: TaskDir, name: str) -> WorkerRow | None:
    """Return the row of an observed sub-agent by its name; None where there is none."""
    return next((row for row in observed_rows(task) if row["agentInstance"] == name), None)


def _take(found: dict[bytes, WorkerRow], key: bytes, at: str, ended: bool, fields: dict[str, Any]) -> None:
    row = found.get(key) or _started(key, at, fields)
    if ended:
        status = _ENDS.get(str(fields.get("status")), Status.COMPLETED)
        row = {**row, "status": status, "endedAt": at, "command": str(fields.get("text") or "")}
    found[key] = row


def _started(key: bytes, at: str, fields: dict[str, Any]) -> WorkerRow:
    agent = str(fields.get("agentType") or "agent")
    name = f"{slug(agent)}-{slug(key.decode(errors='replace')[-8:], '0')}"
    return {
        **BLANK, "agentInstance": name, "agent": agent, "status": Status.RUNNING, "health": "observed",
        "startedAt": at, "observed": True,
    }  # fmt: skip
