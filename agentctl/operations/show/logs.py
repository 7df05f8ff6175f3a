"""Reading and following the output of workers, and the event log of a task."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

from agentctl.adapters import eventlog
from agentctl.adapters.opening import open_plain, pieces
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.adapters.watch import Watch
from agentctl.domain.events import BadLine
from agentctl.lean import TYPE_CHECKING, Any
from agentctl.operations.where.locating import find_worker
from agentctl.operations.where.names_in_log import first_seq_of
from agentctl.supervision.life.judging import Condition, judge

if TYPE_CHECKING:
    from agentctl.domain.documents.views import BadEvent, EventRow

_CHUNK = 1 << 16
#: How many bytes at the end of a file are searched for its last lines.
_LONGEST_TAIL = 64 << 20
_LIVE = (Condition.QUEUED, Condition.SUPERVISED, Condition.UNSUPERVISED, Condition.UNFOLLOWED)


def follow_logs(
    task: TaskDir,
    instance: str,
    *,
    streams: Sequence[str] = ("stdout", "stderr"),
    follow: bool,
    tail: int | None,
    within_s: Callable[[], float | None] = lambda: None,
) -> Iterator[tuple[str, bytes]]:
    """Yield (stream, bytes) of a worker's output; with `follow`, until it has ended and everything was yielded.

    Args:
        tail: Begin with the last `tail` lines of each stream; None means with the first line.
        within_s: Returns how long nothing may be yielded, if nothing comes; then that nothing came is.
    """
    worker = find_worker(task, instance)
    outputs = [_Output(name, getattr(worker, name), tail) for name in streams]
    with Watch([worker.path]) as watch:
        for output in outputs:
            output.watch(watch)
        while True:
            goes_on = follow and is_live(worker)
            given = False
            for output in outputs:
                for chunk in output.read():
                    given = True
                    yield output.name, chunk
            if not goes_on:
                return
            if not given:
                limit_s = within_s()
                watch.sleep(limit_s)
                if limit_s is not None:
                    yield streams[0], b""


def streams_by_time(task: TaskDir, instance: str, streams: Sequence[str]) -> Sequence[str]:
    """Return streams in the order in which they were written to last: nothing else tells which one was earlier."""
    worker = find_worker(task, instance)
    return sorted(streams, key=lambda name: _written_at(getattr(worker, name)))


def _written_at(path: FilePath) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except FileNotFoundError:
        return 0


def is_live(worker: WorkerDir) -> bool:
    """Return whether a worker may still write."""
    return not worker.has_ended and judge(worker) in _LIVE


class _Output:
    """The file of one stream, and how far it has been read."""

    def __init__(self, name: str, path: FilePath, tail: int | None) -> None:
        self.name = name
        self._path = path
        self._offset = 0 if tail is None else start_of_tail(path, tail)

    def watch(self, watch: Watch) -> None:
        if self._path.exists():
            watch.add(self._path)

    def read(self) -> Iterator[bytes]:
        """Yield what is new; a file that shrank (a worker's own `>/dev/stderr` truncates it) is read from its start."""
        try:
            fd = open_plain(self._path)
        except FileNotFoundError:
            return
        try:
            if os.fstat(fd).st_size < self._offset:
                self._offset = 0
            for start, chunk in pieces(fd, self._offset, os.fstat(fd).st_size):
                self._offset = start + len(chunk)
                yield chunk
        finally:
            os.close(fd)


def start_of_tail(path: str, lines: int) -> int:
    """Return the offset at which the last `lines` lines of a file begin."""
    try:
        fd = open_plain(path)
    except FileNotFoundError:
        return 0
    try:
        end = os.fstat(fd).st_size
        if lines == 0:
            return end
        wanted = lines + (1 if end and os.pread(fd, 1, end - 1) == b"\n" else 0)
        first = max(0, end - _LONGEST_TAIL)
        while end > first:
            start = max(first, end - _CHUNK)
            data = os.pread(fd, end - start, start)
            found = data.count(b"\n")
            if found >= wanted:
                at = len(data)
                for _ in range(wanted):
                    at = data.rfind(b"\n", 0, at)
                return start + at + 1
            wanted -= found
            end = start
        return first
    finally:
        os.close(fd)


def follow_events(task: TaskDir, *, follow: bool, instance: str | None = None) -> Iterator[EventRow | BadEvent]:
    """Yield the events of a task with their `seq`, and what is wrong with a bad line. With `follow`, forever."""
    first = 1
    if instance is not None:
        find_worker(task, instance)
        first = first_seq_of(eventlog.blocks_of(task.events, 0), instance)
    reader = eventlog.LogReader(task.events)
    with Watch([task.events]) as watch:
        while True:
            for row in reader.read_new():
                if isinstance(row, BadLine):
                    yield {"seq": row.seq, "problem": row.problem}
                elif instance is None or (row[1].get("agentInstance") == instance and row[0] >= first):
                    event: Any = {"seq": row[0], **row[1]} | {"seq": row[0]}  # Whatever the line claims.
                    yield event  # Its form was checked; what else is in it is taken as the log has it.
            if not follow:
                return
            watch.sleep(None)
