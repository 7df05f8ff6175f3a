"""What a worker reports of itself: progress, messages, its result."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from agentctl.adapters import eventlog
from agentctl.adapters.activitylog import ActivityWriter
from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import to_json, write_whole
from agentctl.adapters.locks import locked
from agentctl.adapters.taskdir import AgentDir
from agentctl.domain import events as ev
from agentctl.domain.activity import REPORTED, Row, RowType
from agentctl.errors import Refused, UsageError
from agentctl.operations.locating import caller_or_refuse

_TEXT_SHOWN = 2000


def report_progress(percent: float | None, text: str | None) -> dict[str, Any]:
    """Tell how far the calling worker is; `list` shows the last word."""
    if percent is None and not text:
        raise UsageError("say how far: a percentage, a text, or both", hint="agentctl report progress 40 'reading'")
    if percent is not None and not 0 <= percent <= 100:
        raise UsageError(f"the percentage must be from 0 to 100, not {percent:g}")
    agent = caller_or_refuse("report progress").agent
    row = {"at": now_iso(), "percent": percent, "text": text}
    with locked(agent.lock):
        _refuse_if_ended(agent)
        write_whole(agent.progress, to_json(row), durable=False)
        _note(agent, {**_row(RowType.PROGRESS, text), "percent": percent})
    return row


def report_message(text: str) -> dict[str, Any]:
    """Leave a message of the calling worker in its activity."""
    if not text.strip():
        raise UsageError("the message is empty")
    agent = caller_or_refuse("report message").agent
    row = _row(RowType.MESSAGE, text)
    with locked(agent.lock):
        _refuse_if_ended(agent)
        _note(agent, row)
    return row


def report_result(summary: str | None, file: str | None) -> dict[str, Any]:
    """Declare the calling worker's result: a summary, a file, or both. A later declaration replaces it."""
    if not summary and not file:
        raise UsageError(
            "a result is a summary, a file, or both", hint="agentctl report result --summary TEXT --file PATH"
        )
    agent = caller_or_refuse("report result").agent
    artifact = _artifact(Path(file)) if file else None
    value = {"summary": summary, "artifacts": [artifact] if artifact else [], "at": now_iso()}
    with locked(agent.lock):
        _refuse_if_ended(agent)
        write_whole(agent.result, to_json(value))
        payload = {"summary": (summary or "")[:_TEXT_SHOWN], "path": artifact["path"] if artifact else None}
        event = ev.make_event(now_iso(), ev.RESULT_DECLARED, agent.task.id, agent.instance, payload, agent.instance)
        eventlog.append(agent.task.events, [event])
    return value


def _artifact(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise UsageError(f"there is no file {path}", hint="--file names a file that exists")
    path = path.absolute()
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return {"path": str(path), "size": path.stat().st_size, "sha256": digest.hexdigest()}


def _refuse_if_ended(agent: AgentDir) -> None:
    if agent.has_ended:
        raise Refused(f"{agent.instance} has ended; what it reports now is not kept")


def _row(kind: RowType, text: str | None) -> dict[str, Any]:
    """Return a row of the activity; its id is told from those of a driver, whose rows can be made again."""
    return Row(kind, f"{REPORTED}{os.urandom(6).hex()}", text=text).to_json(now_iso())


def _note(agent: AgentDir, row: dict[str, Any]) -> None:
    """Append a row to the worker's activity."""
    ActivityWriter(agent.activity).write(to_json(row))
