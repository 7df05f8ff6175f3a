"""Sub-agents of a program that a person runs by hand, as `hook` noted them: shown beside the workers, but not ours."""

from __future__ import annotations

import contextlib

from agentctl.adapters.opening import OddFile
from agentctl.adapters.taskdir import TaskDir
from agentctl.domain.names import slug
from agentctl.domain.states import Status
from agentctl.lean import Any

#: How many of them are shown, the newest ones.
_MOST = 50
_ENDS = {"completed": Status.COMPLETED, "failed": Status.FAILED, "cancelled": Status.CANCELLED}
_UNKNOWN = (
    "reason", "pid", "parent", "queuedAt", "exitCode", "signal", "progress", "durationSeconds", "driver", "agentId",
)  # fmt: skip


def observed_rows(task: TaskDir) -> list[dict[str, Any]]:
    """Return a row for each observed sub-agent, like those of `list`; `observed` is true in it."""
    if not task.observed.exists():
        return []
    from agentctl.adapters.activitylog import ActivityReader  # Few tasks have any.
    from agentctl.domain.activity.rows import read_line

    found: dict[bytes, dict[str, Any]] = {}
    with contextlib.suppress(OddFile):  # A link, a FIFO or the like counts as empty.
        for line in (line for block in ActivityReader(task.observed).blocks() for line in block.splitlines()):
            row = read_line(line, 0)
            if row is not None and row.kind == "agent":
                _take(found, row.id, row.at.decode(errors="replace"), row.phase == "end", row.fields)
    return list(found.values())[-_MOST:]


def observed_row(task: TaskDir, name: str) -> dict[str, Any] | None:
    """Return the row of an observed sub-agent by its name; None where there is none."""
    return next((row for row in observed_rows(task) if row["agentInstance"] == name), None)


def _take(found: dict[bytes, dict[str, Any]], key: bytes, at: str, ended: bool, fields: dict[str, Any]) -> None:
    row = found.get(key)
    if row is None:
        name = f"{slug(str(fields.get('agentType') or 'agent'))}-{slug(key.decode(errors='replace')[-8:], '0')}"
        row = found[key] = {
            "agentInstance": name, "agent": str(fields.get("agentType") or "agent"), "status": Status.RUNNING,
            "observed": True, "attempt": 1, "paused": False, "stalled": False, "health": "observed", "depth": 0,
            "startedAt": at, "endedAt": None, "survivors": [], "askedBelow": 0, "command": "",
            **dict.fromkeys(_UNKNOWN),
        }  # fmt: skip
    if ended:
        row["status"] = _ENDS.get(str(fields.get("status")), Status.COMPLETED)
        row["endedAt"] = at
        row["command"] = str(fields.get("text") or "")
