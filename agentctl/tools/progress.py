"""Who does what, in one line, for a caller that waits."""

from __future__ import annotations

import json
from collections.abc import Sequence

from agentctl.adapters.activitylog import last_lines
from agentctl.adapters.files import read_quietly
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.plaintext import plain, whole
from agentctl.tools.definition import Target
from agentctl.tools.place import Place
from agentctl.tools.results import question_of

#: In characters; so many agents are named, and so much of an activity is looked at.
_LONGEST, _LONGEST_PART, _MOST_NAMED, _LOOKED_BACK_BYTES = 600, 120, 5, 16384


def doing(place: Place, targets: Sequence[Target]) -> str:
    """Return what those do for whom a call waits: `2 of 3 ended; general-1: Bash ls`; at most 600 characters."""
    live = [target for target in targets if not place.agent_of(target.key).has_ended]
    parts = [f"{len(targets) - len(live)} of {len(targets)} ended"]
    parts += [
        f"{target.id}: {_cut(_at_what(place.agent_of(target.key)), _LONGEST_PART)}" for target in live[:_MOST_NAMED]
    ]
    if len(live) > _MOST_NAMED:
        parts.append(f"and {len(live) - _MOST_NAMED} more")
    return _cut("; ".join(parts), _LONGEST)


def _at_what(worker: WorkerDir) -> str:
    """Return what a worker is at: its question, else the last that it reported or called, else that it runs."""
    if not worker.process.exists():
        return "queued"
    question = question_of(worker)
    if question is not None:
        return "idle" if question.get("idle") else f"asks: {question['question']}"
    for line in last_lines(worker.activity, _LOOKED_BACK_BYTES):
        told = _told(line)
        if told:
            return told
    return _progress(read_quietly(worker.progress)) or "running"


def _told(line: bytes) -> str:
    """Return what a row of an activity tells of what is being done; nothing where it tells of something else."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(row, dict):
        return ""
    if row.get("type") == "progress":
        return _progress(row)
    if row.get("type") not in ("tool", "agent") or not isinstance(row.get("name"), str):
        return ""
    detail = row.get("detail")
    first = next(iter(detail.values()), "") if isinstance(detail, dict) else ""
    return f"{row['name']} {first if isinstance(first, str) else ''}".strip()


def _progress(told: dict[str, object]) -> str:
    percent, text = told.get("percent"), told.get("text")
    parts = [f"{percent:g} %" if isinstance(percent, int | float) else "", text if isinstance(text, str) else ""]
    return " ".join(part for part in parts if part)


def _cut(text: str, longest: int) -> str:
    flat = whole(plain(" ".join(text.split())))
    return flat if len(flat) <= longest else f"{flat[: longest - 3]}..."
