"""The output of a worker for the pager, as a terminal shows it: rows, by the offsets of chunks of them.

Remembered is where each chunk of about 16 KiB begins, and with which pen, so a log takes a thousandth of its size in
memory, even one of empty lines. A chunk begins with a row above which nothing moves that comes later; it is interpreted
again when it is drawn.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator

from agentctl.adapters.files import AnyPath
from agentctl.domain.text.terminal_output import (
    COLUMNS,
    ROWS,
    Pen,
    SpelledOutput,
    TerminalOutput,
    TerminalRow,
    without_styles,
)
from agentctl.interfaces.screen.texts.needle import Needle
from agentctl.interfaces.screen.texts.shown import ShownLine, Spot
from agentctl.interfaces.screen.texts.source_file import BLOCK, SourceFile
from agentctl.lean import NamedTuple

#: So long is a chunk, and so long may one be that is interpreted again; the rows of a longer one are kept.
_CHUNK, _LONGEST_CHUNK = 1 << 14, 1 << 17
_CACHED = 32
_MORE_THAN_TEXT = re.compile(rb"[^\n\x20-\x7e]")


class _Extent(NamedTuple):
    """What has been read: bytes, whole chunks, the rows in them, and those behind them.

    They are one value, so that no other thread sees half of a change.
    """

    read: int = 0
    chunks: int = 0
    rows_in_chunks: int = 0
    rows: tuple[TerminalRow, ...] = ()


class _ChunkIndex:
    """Of each whole chunk where it begins and ends, its pen, and the number of its first row."""

    def __init__(self) -> None:
        self.begins, self.ends, self.firsts = array("Q"), array("Q"), array("Q")
        self.pens: list[Pen] = []
        self.extent = _Extent()
        #: The rows of chunks that are too long to be interpreted again.
        self.kept: dict[int, tuple[TerminalRow, ...]] = {}
        self.cached: OrderedDict[int, tuple[TerminalRow, ...]] = OrderedDict()

    def chunk_of(self, number: int) -> int | None:
        """Return the whole chunk with a row; None if it is behind them."""
        extent = self.extent
        return bisect_right(self.firsts, number, 0, extent.chunks) - 1 if number < extent.rows_in_chunks else None


class LogSource:
    """One stream of a worker's output, `stdout` or `stderr`.

    Args:
        is_spelled_out: Nothing is interpreted: control characters are spelled out.
    """

    def __init__(self, path: AnyPath, *, is_spelled_out: bool = False) -> None:
        self.paths: tuple[AnyPath, ...] = (path,)
        self.problem: str | None = None
        self.generation = 0
        self._file = SourceFile(path)
        self._make = SpelledOutput if is_spelled_out else TerminalOutput
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._index = _ChunkIndex()
        self._output: TerminalOutput | SpelledOutput = self._make()
        #: The open chunk: where it begins, its pen, and those of its rows that have settled.
        self._open, self._pen, self._rows = 0, Pen(), list[TerminalRow]()
        #: The rows of whole chunks.
        self._count = 0

    def __len__(self) -> int:
        extent = self._index.extent
        return extent.rows_in_chunks + len(extent.rows)

    def grow(self) -> bool:
        """Read on; return whether there is more to read at once."""
        if self._file.is_replaced(self._index.extent.read):
            self._begin_anew()
            self.generation += 1
        end = self._output.end
        data = self._file.read(BLOCK, end)
        if len(data) == BLOCK and not any(data):
            self._output.skip_to(max(self._file.after_hole(end), end + BLOCK))
        else:
            self._take(data)
        index = self._index
        rows = (*self._rows, *self._output.rows())
        index.extent = _Extent(self._output.end, len(index.ends), self._count, rows)
        return len(data) == BLOCK

    def _take(self, data: bytes) -> None:
        passed = self._pass(data) if len(data) == BLOCK and not _MORE_THAN_TEXT.search(data) else 0
        self._output.feed(data[passed:])
        for row in self._output.settled():
            if row.at - self._open >= _CHUNK and not row.is_tied:
                self._close(row.at, row.pen)
            self._rows.append(row)

    def _pass(self, data: bytes) -> int:
        """Pass over lines of text alone, above the last ones, as far as possible; return how many bytes."""
        lines = data.split(b"\n")
        size = len(data) - sum(map(len, lines[-ROWS - 1 :])) - min(ROWS, len(lines) - 1)
        if size < _CHUNK or max(map(len, lines)) > COLUMNS or not self._output.pass_lines(size):
            return 0
        self._rows += self._output.settled()
        at = begin = self._output.end - size
        if at > self._open:
            self._close(at, self._output.pen)
        while at - begin < size:
            end = data.rfind(b"\n", at - begin, min(at - begin + _CHUNK, size)) + 1
            self._add(begin + end, data.count(b"\n", at - begin, end))
            at = begin + end
        return size

    def _close(self, end: int, pen: Pen) -> None:
        """Close the open chunk; the next one begins with a pen."""
        if end - self._open > _LONGEST_CHUNK:
            self._index.kept[len(self._index.ends)] = tuple(self._rows)
        self._add(end, len(self._rows))
        self._pen, self._rows = pen, []

    def _add(self, end: int, rows: int) -> None:
        index = self._index
        index.begins.append(self._open)
        index.ends.append(end)
        index.firsts.append(self._count)
        index.pens.append(self._pen)
        self._open, self._count = end, self._count + rows

    def paragraph(self, number: int) -> tuple[ShownLine, ...]:
        """Return a row."""
        index = self._index
        extent, chunk = index.extent, index.chunk_of(number)
        if chunk is None:
            rows, place = extent.rows, number - extent.rows_in_chunks
        else:
            rows, place = self._rows_of(index, chunk), number - index.firsts[chunk]
        return (_shown(rows[place]) if place < len(rows) else ShownLine(""),)

    def _rows_of(self, index: _ChunkIndex, chunk: int) -> tuple[TerminalRow, ...]:
        found = index.kept.get(chunk) or index.cached.get(chunk)
        if found is None:
            begin = index.begins[chunk]
            found = self._interpreted(index, chunk, self._file.read(index.ends[chunk] - begin, begin))
            index.cached[chunk] = found
            while len(index.cached) > _CACHED:
                index.cached.popitem(last=False)
        return found

    def _interpreted(self, index: _ChunkIndex, chunk: int, data: bytes) -> tuple[TerminalRow, ...]:
        output = self._make(index.begins[chunk], index.pens[chunk])
        output.feed(data)
        return (*output.settled(), *output.rows())

    def stretch(self, number: int) -> tuple[int, int]:
        """Return the paragraphs that are searched together: (the first, the one behind the last)."""
        index = self._index
        extent, chunk = index.extent, index.chunk_of(number)
        if chunk is None:
            return extent.rows_in_chunks, extent.rows_in_chunks + len(extent.rows)
        return index.firsts[chunk], index.firsts[chunk + 1] if chunk + 1 < extent.chunks else extent.rows_in_chunks

    def hits(self, needle: Needle, first: int, last: int) -> Iterator[Spot]:
        """Yield the lines with a needle, from paragraph `first` to before `last`, which are of one stretch."""
        index = self._index
        extent, chunk = index.extent, index.chunk_of(first)
        if chunk is None:
            rows, begin = extent.rows, extent.rows_in_chunks
        else:
            rows, begin = self._rows_with(index, chunk, needle), index.firsts[chunk]
        for number, row in enumerate(rows, begin):
            if first <= number < last and needle.is_in(row.text):
                yield Spot(number)

    def _rows_with(self, index: _ChunkIndex, chunk: int, needle: Needle) -> tuple[TerminalRow, ...]:
        """Return the rows of a chunk; none where its bytes say already that none has the needle."""
        if chunk in index.kept:
            return index.kept[chunk]
        begin = index.begins[chunk]
        data = self._file.read(index.ends[chunk] - begin, begin)
        text = without_styles(data)
        return () if text is not None and not needle.may_be_in(text) else self._interpreted(index, chunk, data)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def _shown(row: TerminalRow) -> ShownLine:
    is_usual = not any(span.style for span in row.spans)
    return ShownLine(row.text, spans=() if is_usual else row.spans)
