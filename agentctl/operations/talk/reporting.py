"""Keeps what a worker reports about itself: progress, messages, its result."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from agentctl.adapters import eventlog
from agentctl.adapters.activitylog import ActivityWriter
from agentctl.adapters.clock import monotonic, now_iso
from agentctl.adapters.files import make_folder, to_json, write_whole
from agentctl.adapters.locks import locked
from agentctl.adapters.opening import OddFile, open_plain
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain import events as ev
from agentctl.domain.activity.row import REPORTED, Phase, Row, RowType
from agentctl.domain.text.plaintext import whole
from agentctl.domain.worker.reports import DeclaredFile, MessageReport, ProgressReport, Report, ResultReport, entry_of
from agentctl.encoding import as_utf8
from agentctl.errors import Argument, AtTerminal, Refused, StorageError, UsageError, WithArguments
from agentctl.lean import TYPE_CHECKING, Any, TypeVar
from agentctl.operations.where.calling import caller_or_refuse
from agentctl.operations.where.ownership import check_own
from agentctl.supervision.worker.placed import is_away, launch_of
from agentctl.supervision.worker.relative_paths import on_disk, with_artifacts

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker_reports import ReportedMessage, ReportedProgress, ReportedResult

#: A report, and what is written down about it: `progress.json`, a row of the activity, or `result.json`.
_R = TypeVar("_R", bound=Report)
_C = TypeVar("_C", bound=Mapping[str, object])

_TEXT_SHOWN = 2000
#: The number of characters of one report: every reader reads the whole file that holds it.
_LONGEST = 1_000_000
#: How long a report that comes by way of the head may take to its node, and how often it is looked for.
_NODE_LIMIT_S, _NODE_LOOK_S = 30.0, 0.1


def report_progress(percent: float | None, text: str | None) -> ReportedProgress:
    """Report how far the calling worker is; `list` shows the last report."""
    if percent is None and not text:
        raise UsageError(
            "say how far: a percentage, a text, or both", hint=AtTerminal("agentctl report progress 40 'reading'")
        )
    if percent is not None and not 0 <= percent <= 100:
        raise UsageError(f"the percentage must be from 0 to 100, not {percent:g}")
    return _say(_reporting("report progress"), ProgressReport(percent, text), _progress_of)


def report_message(text: str) -> ReportedMessage:
    """Leave a message of the calling worker in its activity."""
    if not text.strip():
        raise UsageError("the message is empty")
    return _say(_reporting("report message"), MessageReport(text), _message_of)


def report_result(summary: str | None, file: str | None) -> ReportedResult:
    """Declare the calling worker's result: a summary, a file, or both. A later declaration replaces it."""
    if not summary and not file:
        raise UsageError(
            "a result is a summary, a file, or both",
            hint=AtTerminal("agentctl report result --summary TEXT --file PATH"),
        )
    worker = _reporting("report result")
    return _say(worker, ResultReport(summary, _declared(Path(file)) if file else None), _result_of)


def _say(worker: WorkerDir, report: _R, content_of: Callable[[_R], _C]) -> _C:
    """Keep a report of the calling worker; if a sandbox prevents that, have the worker's driver keep it."""
    text = report.summary if isinstance(report, ResultReport) else report.text
    if len(text or "") > _LONGEST:
        raise UsageError(
            f"a report is at most {_LONGEST} characters long",
            hint=WithArguments("more goes into a file: ", Argument("file", "PATH")),
        )
    if is_away(worker):
        _pass_to_node(worker, report)
        return content_of(report)
    try:
        return _keep(worker, report, content_of(report))
    except (StorageError, OSError) as error:
        from agentctl.operations.talk import outbox

        if not outbox.is_walled(worker, error):
            raise
        outbox.deliver_entry(worker, entry_of(report))
        return content_of(report)


def _pass_to_node(worker: WorkerDir, report: Report) -> None:
    """Have a report of a worker on a node kept there, where its files are written: it comes from a tool at the head."""
    launch = launch_of(worker)
    assert launch is not None
    make_folder(launch.inbound.reports)
    name = f"{time.time_ns():020d}-{os.getpid()}.json"  # In the order in which they were made.
    write_whole(launch.inbound.reports / name, to_json(entry_of(report)))
    until = monotonic() + _NODE_LIMIT_S
    while not launch.kept_report.exists() or launch.kept_report.read_text() < name:
        if monotonic() >= until or not is_away(worker):
            raise Refused(f"the node of {worker.instance} has not kept the report", hint="report it again")
        time.sleep(_NODE_LOOK_S)


def _progress_of(report: ProgressReport) -> ReportedProgress:
    return {"at": now_iso(), "percent": report.percent, "text": _whole(report.text)}


def _message_of(report: MessageReport) -> ReportedMessage:
    text = whole(as_utf8(report.text))
    return {"at": now_iso(), "type": RowType.MESSAGE, "id": _new_id(), "phase": Phase.END, "text": text}


def _result_of(report: ResultReport) -> ReportedResult:
    artifacts = [report.artifact.to_json()] if report.artifact else []
    return {"summary": _whole(report.summary), "artifacts": artifacts, "at": now_iso()}


def _whole(text: str | None) -> str | None:
    return None if text is None else whole(as_utf8(text))


def keep_report(worker: WorkerDir, report: Report) -> None:
    """Write a worker's report down.

    Raises:
        Refused: The worker has ended.
    """
    match report:
        case ProgressReport():
            _keep(worker, report, _progress_of(report))
        case MessageReport():
            _keep(worker, report, _message_of(report))
        case ResultReport():
            _keep(worker, report, _result_of(report))


def _keep(worker: WorkerDir, report: Report, content: _C) -> _C:
    """Write down what becomes of a worker's report, and return it."""
    with locked(worker.lock):
        _refuse_if_ended(worker)
        match report:
            case ProgressReport():
                write_whole(worker.progress, to_json(content), durable=False)
                note_in_activity(worker, RowType.PROGRESS, _whole(report.text), percent=report.percent)
            case MessageReport():
                _append(worker, content)
            case ResultReport():
                write_whole(worker.result, to_json(with_artifacts(content, on_disk, worker.task.root.path)))
                eventlog.append(worker.task.events, [_event_of(worker, report)])
    return content


def _event_of(worker: WorkerDir, result: ResultReport) -> ev.Event:
    path = result.artifact.path if result.artifact else None
    payload = {"summary": (result.summary or "")[:_TEXT_SHOWN], "path": path}
    return ev.make_event(now_iso(), ev.RESULT_DECLARED, worker.task.id, worker.instance, payload, worker.instance)


def _reporting(what: str) -> WorkerDir:
    worker = caller_or_refuse(what).worker
    check_own(worker.task)
    return worker


def _declared(path: Path) -> DeclaredFile:
    try:
        fd = open_plain(os.path.realpath(path))
    except OddFile as error:
        raise UsageError(error.message, hint=WithArguments("give ", Argument("file"), " a plain file")) from error
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UsageError(
            f"there is no file {path}", hint=WithArguments("give ", Argument("file"), " a file that exists")
        ) from error
    digest = hashlib.sha256()
    with open(fd, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
        return DeclaredFile(str(path.absolute()), os.fstat(fd).st_size, digest.hexdigest())


def _refuse_if_ended(worker: WorkerDir) -> None:
    if worker.has_ended:
        raise Refused(f"{worker.instance} has ended; what it reports now is not kept")


def note_in_activity(worker: WorkerDir, kind: RowType, text: str | None, **more: Any) -> None:
    """Add a row to a worker's activity."""
    _append(worker, {**_row(kind, text), **more})


def _row(kind: RowType, text: str | None) -> dict[str, Any]:
    return Row(kind, _new_id(), text=text).to_json(now_iso())


def _new_id() -> str:
    """Return the id of a row; it differs from those of a driver, whose rows can be made again."""
    return f"{REPORTED}{os.urandom(6).hex()}"


def _append(worker: WorkerDir, row: Mapping[str, object]) -> None:
    ActivityWriter(worker.activity).write(to_json(row))
