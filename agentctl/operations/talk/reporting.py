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
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain import events as ev
from agentctl.domain.activity.row import REPORTED, Row, RowType
from agentctl.domain.plaintext import whole
from agentctl.errors import Refused, StorageError, UsageError
from agentctl.operations.where.calling import caller_or_refuse
from agentctl.operations.where.ownership import check_own

_TEXT_SHOWN = 2000
#: Characters of one entry: what holds it is read whole, by everybody who asks.
_LONGEST = 1_000_000


def report_progress(percent: float | None, text: str | None) -> dict[str, Any]:
    """Tell how far the calling worker is; `list` shows the last entry."""
    if percent is None and not text:
        raise UsageError("say how far: a percentage, a text, or both", hint="agentctl report progress 40 'reading'")
    if percent is not None and not 0 <= percent <= 100:
        raise UsageError(f"the percentage must be from 0 to 100, not {percent:g}")
    return _say(_reporting("report progress"), {"verb": "progress", "percent": percent, "text": text})


def report_message(text: str) -> dict[str, Any]:
    """Leave a message of the calling worker in its activity."""
    if not text.strip():
        raise UsageError("the message is empty")
    return _say(_reporting("report message"), {"verb": "message", "text": text})


def report_result(summary: str | None, file: str | None) -> dict[str, Any]:
    """Declare the calling worker's result: a summary, a file, or both. A later declaration replaces it."""
    if not summary and not file:
        raise UsageError(
            "a result is a summary, a file, or both", hint="agentctl report result --summary TEXT --file PATH"
        )
    worker = _reporting("report result")
    artifact = _artifact(Path(file)) if file else None
    return _say(worker, {"verb": "result", "summary": summary, "artifact": artifact})


def _say(worker: WorkerDir, entry: dict[str, Any]) -> dict[str, Any]:
    """Keep an entry of the calling worker; where a sandbox does not let it, have its driver keep it."""
    if len(entry.get("summary") or entry.get("text") or "") > _LONGEST:
        raise UsageError(f"a report is at most {_LONGEST} characters long", hint="more goes into a file: --file PATH")
    try:
        return keep(worker, entry)
    except (StorageError, OSError) as error:
        from agentctl.operations.talk import outbox

        if not outbox.is_walled(worker, error):
            raise
        outbox.deliver(worker, entry)
        return report_of(entry)


def report_of(entry: dict[str, Any]) -> dict[str, Any]:
    """Return what is told of an entry that is being kept."""
    match entry["verb"]:
        case "progress":
            return {"at": now_iso(), "percent": entry["percent"], "text": _whole(entry["text"])}
        case "message":
            return _row(RowType.MESSAGE, _whole(entry["text"]))
        case _:
            artifacts = [entry["artifact"]] if entry["artifact"] else []
            return {"summary": _whole(entry["summary"]), "artifacts": artifacts, "at": now_iso()}


def _whole(text: str | None) -> str | None:
    return None if text is None else whole(text)


def keep(worker: WorkerDir, entry: dict[str, Any]) -> dict[str, Any]:
    """Keep what a worker says of itself: {verb: progress, percent, text}, {verb: message, text} or
    {verb: result, summary, artifact}. Return what is told of it.

    Raises:
        Refused: The worker has ended.
    """
    report = report_of(entry)
    with locked(worker.lock):
        _refuse_if_ended(worker)
        match entry["verb"]:
            case "progress":
                write_whole(worker.progress, to_json(report), durable=False)
                note(worker, RowType.PROGRESS, report["text"], percent=entry["percent"])
            case "message":
                _append(worker, report)
            case _:
                write_whole(worker.result, to_json(report))
                eventlog.append(worker.task.events, [_declared(worker, entry)])
    return report


def _declared(worker: WorkerDir, entry: dict[str, Any]) -> ev.Event:
    path = entry["artifact"]["path"] if entry["artifact"] else None
    payload = {"summary": (entry["summary"] or "")[:_TEXT_SHOWN], "path": path}
    return ev.make_event(now_iso(), ev.RESULT_DECLARED, worker.task.id, worker.instance, payload, worker.instance)


def _reporting(what: str) -> WorkerDir:
    worker = caller_or_refuse(what).worker
    check_own(worker.task)
    return worker


def _artifact(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise UsageError(f"there is no file {path}", hint="--file names a file that exists")
    path = path.absolute()
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return {"path": str(path), "size": path.stat().st_size, "sha256": digest.hexdigest()}


def _refuse_if_ended(worker: WorkerDir) -> None:
    if worker.has_ended:
        raise Refused(f"{worker.instance} has ended; what it reports now is not kept")


def note(worker: WorkerDir, kind: RowType, text: str | None, **more: Any) -> None:
    """Add a row to what a worker says of itself."""
    _append(worker, {**_row(kind, text), **more})


def _row(kind: RowType, text: str | None) -> dict[str, Any]:
    """Return a row of the activity; its id is told from those of a driver, whose rows can be made again."""
    return Row(kind, f"{REPORTED}{os.urandom(6).hex()}", text=text).to_json(now_iso())


def _append(worker: WorkerDir, row: dict[str, Any]) -> None:
    ActivityWriter(worker.activity).write(to_json(row))
