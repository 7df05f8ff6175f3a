"""A worker's activity: reading, following and rebuilding its rows, and the transcript for people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from agentctl.adapters import activitylog
from agentctl.adapters.activitylog import ActivityReader
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.adapters.watch import Watch
from agentctl.domain.activity.row import REPORTED
from agentctl.domain.activity.rows import read_line
from agentctl.domain.activity.transcript import Transcript, TranscriptEntry
from agentctl.errors import Next, Refused
from agentctl.lean import TYPE_CHECKING, Any
from agentctl.operations.show.logs import is_live, start_of_tail
from agentctl.operations.where.locating import find_worker
from agentctl.supervision.worker.spec import is_for_agent, order_of

if TYPE_CHECKING:
    from agentctl.domain.documents.views import ActivityRow, BadActivity


def has_transcript(worker: WorkerDir) -> bool:
    """Return whether a worker has a transcript: its driver reports what the program does, and does not only run it."""
    if not is_for_agent(order_of(worker)):
        return False
    return worker.activity.exists() or not worker.has_ended


def follow_activity(task: TaskDir, instance: str, *, follow: bool) -> Iterator[ActivityRow | BadActivity]:
    """Yield each row of the file with the number of its line, and what is wrong with a bad line."""
    for number, line in _lines(find_worker(task, instance), follow=follow):
        if read_line(line, number) is None:
            yield {"line": number, "problem": "not a row of an activity: not JSON, or it has no type"}
        else:
            row: Any = {"line": number, **json.loads(line)}  # It has a type; the rest is taken as the file has it.
            yield row


def follow_transcript(task: TaskDir, instance: str, *, follow: bool, tail: int | None) -> Iterator[TranscriptEntry]:
    """Yield what a worker did, paragraph by paragraph; with `follow`, until it has ended and everything was yielded.

    Args:
        tail: Begin with the last `tail` rows; None means with the first row.
    """
    transcript = Transcript()
    for number, line in _lines(find_worker(task, instance), follow=follow, tail=tail):
        row = read_line(line, number)
        entry = None if row is None else transcript.take(row)
        if entry is not None:
            yield entry


def _lines(worker: WorkerDir, *, follow: bool, tail: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Yield (number, line); with `follow`, until the worker has ended. A replaced file is read again from its start."""
    reader = ActivityReader(worker.activity, 0 if tail is None else start_of_tail(worker.activity, tail))
    number = 0
    with Watch([worker.path]) as watch:
        while True:
            goes_on = follow and is_live(worker)
            if reader.is_replaced():
                reader.restart()
                number = 0
            given = number
            for block in reader.blocks():
                for number, line in enumerate(block.split(b"\n")[:-1], number + 1):  # noqa: B020 - it continues
                    yield number, line
            if not goes_on:
                return
            if given == number:
                watch.sleep(None)


def rebuild(worker: WorkerDir, lines: Iterable[bytes]) -> int:
    """Replace the activity with `lines`, made from the raw output; return how many rows it has now.

    The worker's own reports are not in the raw output: those rows stay.

    Raises:
        Refused: The worker has not ended and may still write.
    """
    if not worker.has_ended:
        raise Refused(
            f"{worker.instance} has not ended; its activity is being written", hint=Next("wait", worker.instance)
        )
    return activitylog.replace(worker.activity, _merged(_reported(worker), lines))


def _reported(worker: WorkerDir) -> Iterator[bytes]:
    mark = b'"' + REPORTED.encode()
    for block in ActivityReader(worker.activity).blocks():
        if mark not in block:
            continue
        for line in block.splitlines(keepends=True):
            row = read_line(line, 0)
            if row is not None and row.id.startswith(REPORTED.encode()):
                yield line


def _merged(reported: Iterator[bytes], lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield both, merged by time; neither is sorted again."""
    own = next(reported, None)
    for line in lines:
        while own is not None and _time_of(own) < _time_of(line):
            yield own
            own = next(reported, None)
        yield line
    if own is not None:
        yield own
    yield from reported


def _time_of(line: bytes) -> bytes:
    row = read_line(line, 0)
    return b"" if row is None else row.at
