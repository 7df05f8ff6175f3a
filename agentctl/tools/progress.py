"""One line about what workers are doing, for a caller that waits for them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from agentctl.adapters.activitylog import last_lines
from agentctl.adapters.files import read_known
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.text.plaintext import plain, shortened, whole
from agentctl.tools.awaited_worker import Target
from agentctl.tools.results import question_of
from agentctl.tools.scope import Scope

#: The longest line and the longest part of it, in characters; how many agents it names; how much activity is read.
_LONGEST, _LONGEST_PART, _MOST_NAMED, _LOOKED_BACK_BYTES = 600, 120, 5, 16384


def doing(scope: Scope, targets: Sequence[Target]) -> str:
    """Return what the workers of a call are doing, in at most 600 characters: `2 of 3 ended; general-1: Bash ls`."""
    live = [target for target in targets if not scope.agent_of(target.key).has_ended]
    parts = [f"{len(targets) - len(live)} of {len(targets)} ended"]
    parts += [
        f"{target.id}: {_cut(_at_what(scope.agent_of(target.key)), _LONGEST_PART)}" for target in live[:_MOST_NAMED]
    ]
    if len(live) > _MOST_NAMED:
        parts.append(f"and {len(live) - _MOST_NAMED} more")
    return _cut("; ".join(parts), _LONGEST)


def _at_what(worker: WorkerDir) -> str:
    """Return what a worker is doing: its question, else what it reported or called last, else `running`."""
    if not worker.process.exists():
        return "queued"
    question = question_of(worker)
    if question is not None:
        return "idle" if question.idle else f"asks: {question.text}"
    for line in last_lines(worker.activity, _LOOKED_BACK_BYTES):
        work = _work_in(line)
        if work:
            return work
    return _progress(read_known(worker.progress)) or "running"


def _work_in(line: bytes) -> str:
    """Return the work that a row of an activity describes; empty if it describes none."""
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


def _progress(row: dict[str, object]) -> str:
    percent, text = row.get("percent"), row.get("text")
    parts = [f"{percent:g} %" if isinstance(percent, int | float) else "", text if isinstance(text, str) else ""]
    return " ".join(part for part in parts if part)


def _cut(text: str, longest: int) -> str:
    return shortened(whole(plain(" ".join(text.split()))), longest)
