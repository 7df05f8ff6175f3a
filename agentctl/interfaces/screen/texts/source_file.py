"""A file of a worker that is held open while it is shown, and its whole lines, block by block.

What was read once is read again from the same file, so a file that was replaced stays readable until the next look.
One thread reads on while another one draws: each use of the descriptor holds a lock.
"""

from __future__ import annotations

import os
import threading

from agentctl.adapters.eventlog import LONGEST_LINE
from agentctl.adapters.files import AnyPath
from agentctl.adapters.opening import open_plain
from agentctl.lean import NamedTuple

#: How much is read at once, and in one call of `grow`: two milliseconds' work.
BLOCK = 1 << 16


class SourceFile:
    """A plain file, for two threads."""

    def __init__(self, path: AnyPath) -> None:
        self.path = path
        self._fd: int | None = None
        self._is_closed = False
        self._lock = threading.Lock()

    def is_replaced(self, read: int) -> bool:
        """Open the file where it is there and not open; return whether the `read` bytes read so far no longer count.

        A file that was removed, and not replaced, still counts.

        Raises:
            OSError: It cannot be read; an `OddFile` where something else is in its place.
        """
        with self._lock:
            if self._is_closed:
                return False
            try:
                fd = open_plain(self.path)
            except FileNotFoundError:
                return False
            before, self._fd = self._fd, fd
            found = os.fstat(fd)
            if before is None:
                return False
            is_other = not os.path.samestat(os.fstat(before), found)
            os.close(before)
            return is_other or found.st_size < read

    def read(self, length: int, offset: int) -> bytes:
        """Return up to `length` bytes; none where the file is not open, or ends there."""
        with self._lock:
            return b"" if self._fd is None else os.pread(self._fd, length, offset)

    def after_hole(self, offset: int) -> int:
        """Return where the next data lies, without reading the hole before it (lseek(2))."""
        with self._lock:
            if self._fd is None:
                return offset
            try:
                return os.lseek(self._fd, offset, os.SEEK_DATA)
            except OSError:  # ENXIO: a hole to the end; EINVAL: a file system that does not know its holes.
                return max(offset, os.fstat(self._fd).st_size)

    def line_at(self, offset: int) -> bytes:
        """Return the line that begins at an offset, without its newline; cut where it is too long."""
        length = 1 << 12
        while True:
            data = self.read(length, offset)
            newline = data.find(b"\n")
            if newline >= 0 or len(data) < length or length >= LONGEST_LINE:
                return data if newline < 0 else data[:newline]
            length = min(8 * length, LONGEST_LINE)

    def close(self) -> None:
        """Close it; whoever still reads gets nothing."""
        with self._lock:
            self._is_closed = True
            fd, self._fd = self._fd, None
            if fd is not None:
                os.close(fd)


class LineBlock(NamedTuple):
    """Whole lines, and the offset at which they begin; or none, where a line was too long to be read."""

    begin: int
    lines: bytes
    skipped: int = 0


class LineBlocks:
    """Reads a file of lines from its start, then what has come since, as `eventlog.blocks` does.

    A line that is too long is read past piece by piece, so that no pass takes long, and never twice.
    """

    def __init__(self, file: SourceFile) -> None:
        self._file = file
        self.offset = 0
        self._length = BLOCK
        self._is_skipping = False

    def next(self) -> LineBlock | None:
        """Return the next lines; None where there are no more whole ones by now."""
        if self._is_skipping:
            return self._skip()
        while True:
            data = self._file.read(self._length, self.offset)
            whole = data.rfind(b"\n") + 1
            if whole:
                begin = self.offset
                self.offset, self._length = begin + whole, BLOCK
                return LineBlock(begin, data[:whole])
            if len(data) < self._length:
                return None
            if self._length >= LONGEST_LINE:
                self._is_skipping = True
                return self._skip()
            self._length = min(4 * self._length, LONGEST_LINE)

    def _skip(self) -> LineBlock | None:
        begin = self.offset
        self.offset = self._file.after_hole(begin)
        data = self._file.read(BLOCK, self.offset)
        newline = data.find(b"\n")
        self.offset += len(data) if newline < 0 else newline + 1
        self._is_skipping = newline < 0
        self._length = BLOCK
        return LineBlock(begin, b"", skipped=int(newline >= 0)) if self.offset > begin else None
