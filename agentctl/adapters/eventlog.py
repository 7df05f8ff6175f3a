"""The append-only log of a task. It knows lines, not their meaning.

A newline commits a line. Appends happen under the log's own flock (on the file itself: it is never replaced); readers
take no lock.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from agentctl.adapters.files import AnyPath, storage_errors, write_all
from agentctl.adapters.locks import locked
from agentctl.adapters.opening import open_plain, pieces
from agentctl.domain.events import QUEUED, REMOVED, BadLine, Event, about, decode, encode
from agentctl.errors import StorageError

#: The decoded events of a block stay in the processor's cache: twice as much makes a list of 10,000 workers 2 % slower.
_BLOCK = 1 << 15
#: No line of ours is as long. A longer one is skipped without being held in memory.
LONGEST_LINE = 4 << 20
_TOO_LONG = f"longer than {LONGEST_LINE} bytes"


class NotFlushed(StorageError):
    """What was appended is in the log, and it is not known whether a power cut leaves it there.

    Attributes:
        begin: Its offset.
        end: The offset after it.
    """

    def __init__(self, refusal: StorageError, begin: int, end: int) -> None:
        super().__init__(refusal.wrong, refusal.steps)
        self.begin, self.end = begin, end


def append(
    path: AnyPath,
    events: Iterable[Event],
    *,
    unless: Callable[[int], bool] | None = None,
    known: Callable[[int], Collection[str | None]] | None = None,
    durable: bool = True,
) -> int | None:
    """Append `events`, durably; all of them are in the log, whole and together, or none.

    Args:
        unless: Called under the lock with the log's descriptor; where it returns True, nothing is appended.
        known: Called in the same way; it returns the workers whose events are left out; None: what is about no worker.
        durable: On disk, and not only in memory, when this returns.

    Returns:
        The offset in the log after them; None if nothing was appended.

    Raises:
        NotFlushed: The disk has failed at the flush: the log has the events.
        StorageError: The disk is full or read-only; the log is as it was.
        LockTimeout: Another writer is stuck.
    """
    data = encode(events) if known is None else b""
    try:
        with locked(path) as fd:
            size = cut_torn_tail(fd)
            if unless is not None and unless(fd):
                return None
            if known is not None:
                has = known(fd)
                data = encode(event for event in events if event.get("agentInstance") not in has)
            try:
                os.lseek(fd, size, os.SEEK_SET)
                write_all(fd, data)
            except BaseException:
                os.ftruncate(fd, size)
                raise
            keep = os.dup(fd) if durable else None
    except OSError:
        with storage_errors(path, "append to"):
            raise
    end = size + len(data)
    # Outside the lock: others append meanwhile, and one flush may serve several of them.
    if keep is not None:
        try:
            with storage_errors(path, "flush"):
                _flush(keep)
        except StorageError as error:
            raise NotFlushed(error, size, end) from error
    return end


def flush_again(path: AnyPath, found: NotFlushed) -> None:
    """Make what was appended survive a power cut after all.

    It is written once more where it is: after a flush that failed, the kernel may take what it has in memory for
    written (https://lwn.net/Articles/752063/), and the next flush would succeed without it.

    Raises:
        StorageError: The disk still refuses it.
    """
    with storage_errors(path, "flush"):
        fd = open_plain(path, os.O_RDWR)
        try:
            _write_again(fd, found)
            _sync(fd)
        finally:
            os.close(fd)


def _write_again(fd: int, found: NotFlushed) -> None:
    size = found.end - found.begin
    if os.pwrite(fd, os.pread(fd, size, found.begin), found.begin) < size:
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def flush(path: AnyPath) -> None:
    """Make everything in a log survive a power cut; a log that was removed has nothing to lose."""
    with storage_errors(path, "flush"), contextlib.suppress(FileNotFoundError):
        _flush(open_plain(path))


def _flush(fd: int) -> None:
    try:
        _sync(fd)
    finally:
        os.close(fd)


def _sync(fd: int) -> None:
    os.fsync(fd) if not hasattr(os, "fdatasync") else os.fdatasync(fd)


def cut_torn_tail(fd: int) -> int:
    """Cut off what a killed writer left after the last newline; return the new size."""
    size = os.fstat(fd).st_size
    if size == 0 or os.pread(fd, 1, size - 1) == b"\n":
        return size
    start = max(0, size - LONGEST_LINE)
    newline = os.pread(fd, size - start, start).rfind(b"\n")
    size = start + newline + 1 if newline >= 0 else _last_newline(fd, size)
    os.ftruncate(fd, size)
    return size


def _last_newline(fd: int, end: int) -> int:
    """Return the offset after the last newline before `end`; 0 where there is none."""
    found = 0
    for start, data in pieces(fd, 0, end):
        newline = data.rfind(b"\n")
        found = start + newline + 1 if newline >= 0 else found
    return found


def _behind_newline(fd: int, start: int, end: int) -> int | None:
    """Return the offset after the next newline; None where there is none."""
    found = ((offset, data.find(b"\n")) for offset, data in pieces(fd, start, end))
    return next((offset + newline + 1 for offset, newline in found if newline >= 0), None)


def blocks(fd: int, start: int) -> Iterator[tuple[int, bytes]]:
    """Yield the committed lines from an offset on, some at a time: (offset after them, the lines).

    A line that is longer than `LONGEST_LINE` is yielded empty. What comes after the last newline does not count.
    """
    end = os.fstat(fd).st_size
    length = _BLOCK
    while start < end:
        data = os.pread(fd, min(length, end - start), start)
        whole = data.rfind(b"\n") + 1
        if whole:
            start, length = start + whole, _BLOCK
            yield start, data[:whole]
        elif len(data) < length:
            return
        elif length < LONGEST_LINE:
            length = min(4 * length, LONGEST_LINE)
        else:
            behind = _behind_newline(fd, start + len(data), end)
            if behind is None:
                return
            start, length = behind, _BLOCK
            yield start, b""


def blocks_of(path: AnyPath, start: int) -> Iterator[tuple[int, bytes]]:
    """Yield the same from the file at a path; nothing where there is none."""
    try:
        fd = open_plain(path)
    except FileNotFoundError:
        return
    try:
        yield from blocks(fd, start)
    finally:
        os.close(fd)


#: A worker begins with the one; after the other its name is another worker's.
_BORDERS = frozenset({QUEUED, REMOVED})


def events_about(path: AnyPath, instance: str, kinds: Collection[str]) -> list[Event]:
    """Return the events of these kinds about the worker of a name from a log; none where there is no log."""
    return _since_its_beginning((lines for _, lines in blocks_of(path, 0)), instance, kinds)


def _since_its_beginning(pieces: Iterable[bytes], instance: str, kinds: Collection[str]) -> list[Event]:
    found: list[Event] = []
    for lines in pieces:
        for event in about(lines, instance, {*kinds, *_BORDERS}):
            if event["type"] in _BORDERS:  # What was before is about another worker of its name.
                found.clear()
            if event["type"] in kinds:
                found.append(event)
    return found


def instances_in(
    fd: int, kinds: Collection[str], since: int = 0, *, said: Mapping[str, object] | None = None
) -> set[str]:
    """Return the workers that an open log has events of these kinds about, from an offset on.

    Args:
        said: What the payload of such an event has to say.
    """
    found = set()
    for _, lines in blocks(fd, since):
        for row in decode(lines, 1):
            if isinstance(row, BadLine):
                continue
            kind, instance = row[1]["type"], str(row[1].get("agentInstance"))
            if kind in _BORDERS:
                found.discard(instance)
            if kind in kinds and (said is None or said.items() <= row[1]["payload"].items()):
                found.add(instance)
    return found


def events_in(fd: int, instance: str, kinds: Collection[str], since: int = 0) -> list[Event]:
    """Return the same from an open log, from an offset on."""
    return _since_its_beginning((lines for _, lines in blocks(fd, since)), instance, kinds)


class LogReader:
    """Reads a log from its start, then what was added since; each line has a seq, bad lines too."""

    def __init__(self, path: AnyPath) -> None:
        self.path = path
        self.offset = 0
        self._next_seq = 1

    def read_new(self) -> list[tuple[int, Event] | BadLine]:
        """Return the rows that were committed since the last call."""
        return list(self.rows())

    def rows(self) -> Iterator[tuple[int, Event] | BadLine]:
        """Yield the rows that were committed since the last call; the caller must read them to the end.

        They are read a piece at a time: a long log takes two thirds of the time and half of the memory.
        """
        return chain.from_iterable(self._pieces())

    def events(self) -> Iterator[Event]:
        """Yield the same without their numbers, and without the lines that are not events."""
        return (row[1] for row in self.rows() if not isinstance(row, BadLine))

    def _pieces(self) -> Iterator[Sequence[tuple[int, Event] | BadLine]]:
        for behind, lines in blocks_of(self.path, self.offset):
            rows = decode(lines, self._next_seq) if lines else [BadLine(self._next_seq, _TOO_LONG)]
            self.offset = behind
            self._next_seq += len(rows)
            yield rows
