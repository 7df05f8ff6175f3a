"""The append-only log of a task. It knows lines, not their meaning.

A newline commits a line. Appends happen under the log's own flock (on the file itself: it is never replaced); readers
take no lock.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator

from agentctl.adapters.files import AnyPath, storage_errors, write_all
from agentctl.adapters.locks import locked
from agentctl.domain.events import BadLine, Event, decode, encode

_BLOCK = 1 << 16


def append(
    path: AnyPath, events: Iterable[Event], *, unless: Callable[[int], bool] | None = None, durable: bool = True
) -> bool:
    """Append `events`, durably; they stand in the log whole and together, or not at all.

    Args:
        unless: Called under the lock with the log's descriptor; where it returns True, nothing is appended.
        durable: On disk, and not only in memory, when this returns.

    Returns:
        Whether they were appended.

    Raises:
        StorageError: The disk is full or read-only; the log is as it was.
        LockTimeout: Another writer stands still.
    """
    data = encode(events)
    with storage_errors(path, "append to"):
        with locked(path) as fd:
            size = cut_torn_tail(fd)
            if unless is not None and unless(fd):
                return False
            try:
                os.lseek(fd, size, os.SEEK_SET)
                write_all(fd, data)
            except BaseException:
                os.ftruncate(fd, size)
                raise
            keep = os.dup(fd) if durable else None
        # Outside of the lock: others append meanwhile, and one flush may serve several of them.
        if keep is not None:
            _flush(keep)
    return True


def flush(path: AnyPath) -> None:
    """Make all that stands in a log survive a power cut; one that was removed has nothing to lose."""
    with storage_errors(path, "flush"), contextlib.suppress(FileNotFoundError):
        _flush(os.open(path, os.O_RDONLY | os.O_CLOEXEC))


def _flush(fd: int) -> None:
    try:
        os.fsync(fd) if not hasattr(os, "fdatasync") else os.fdatasync(fd)
    finally:
        os.close(fd)


def cut_torn_tail(fd: int) -> int:
    """Cut what a killed writer left behind the last newline; return the size."""
    size = os.fstat(fd).st_size
    if size == 0 or os.pread(fd, 1, size - 1) == b"\n":
        return size
    end = size
    while end > 0:
        start = max(0, end - _BLOCK)
        newline = os.pread(fd, end - start, start).rfind(b"\n")
        if newline >= 0:
            size = start + newline + 1
            break
        end = start
    else:
        size = 0
    os.ftruncate(fd, size)
    return size


def read_since(fd: int, offset: int) -> bytes:
    """Return the committed bytes of the log from `offset` on."""
    size = os.fstat(fd).st_size
    data = os.pread(fd, max(0, size - offset), offset)
    return data[: data.rfind(b"\n") + 1]


class LogReader:
    """Reads a log from its start, then what has come since; one seq a line, bad lines counted too."""

    def __init__(self, path: AnyPath) -> None:
        self.path = path
        self.offset = 0
        self._next_seq = 1

    def read_new(self) -> list[tuple[int, Event] | BadLine]:
        """Return the rows that were committed since the last call."""
        return list(self.rows())

    def rows(self) -> Iterator[tuple[int, Event] | BadLine]:
        """Yield the rows that were committed since the last call; to be taken to their end.

        A piece at a time, so that a long log takes two thirds of the time and half of the memory.
        """
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            end = os.fstat(fd).st_size
            while data := _whole_lines(fd, self.offset, end):
                rows = list(decode(data, self._next_seq))
                self.offset += len(data)
                self._next_seq += len(rows)
                yield from rows
        finally:
            os.close(fd)


def _whole_lines(fd: int, start: int, end: int) -> bytes:
    """Return some whole lines from `start` on, at least one; none where there is no newline before `end`."""
    length = _BLOCK
    while True:
        data = os.pread(fd, min(length, end - start), start)
        whole = data[: data.rfind(b"\n") + 1]
        if whole or len(data) < length:
            return whole
        length *= 2
