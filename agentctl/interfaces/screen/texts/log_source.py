"""The raw output of a worker for the pager: lines, by the offsets of chunks of them.

A paragraph is a line, or a part of a line that is too long, cut where no character is divided. Remembered is where each
chunk of about 16 KiB begins, so a log takes a thousandth of its size in memory, even one of empty lines.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator

from agentctl.adapters.files import AnyPath
from agentctl.domain.text.plaintext import plain
from agentctl.interfaces.screen.texts.needle import Needle
from agentctl.interfaces.screen.texts.shown import LONGEST_LINE, ShownLine, Spot
from agentctl.interfaces.screen.texts.source_file import BLOCK, SourceFile
from agentctl.lean import NamedTuple

#: A chunk ends at the last newline in so many bytes, and is closed once so many have come.
_CHUNK, _ENOUGH = 1 << 14, 1 << 14 | 1 << 13
_CACHED = 32


class _Extent(NamedTuple):
    """What has been read: bytes, chunks with the open one, paragraphs.

    They are one value, so that no other thread sees half of a change.
    """

    read: int = 0
    chunks: int = 0
    paragraphs: int = 0


class _ChunkIndex:
    """Of each chunk where it begins and ends, and the number of its first paragraph."""

    def __init__(self) -> None:
        self.begins, self.ends, self.firsts = array("Q"), array("Q"), array("Q")
        self.extent = _Extent()
        self.cached: OrderedDict[tuple[int, int], list[bytes]] = OrderedDict()


class LogSource:
    """One stream of a worker's output, `stdout` or `stderr`."""

    def __init__(self, path: AnyPath) -> None:
        self.paths: tuple[AnyPath, ...] = (path,)
        self.problem: str | None = None
        self.generation = 0
        self._file = SourceFile(path)
        self._index = _ChunkIndex()
        #: Where the open chunk begins, and the number of its first paragraph.
        self._open, self._first = 0, 0

    def __len__(self) -> int:
        return self._index.extent.paragraphs

    def grow(self) -> bool:
        """Read on; return whether there is more to read at once."""
        if self._file.is_replaced(self._index.extent.read):
            self._open = self._first = 0
            self._index = _ChunkIndex()
            self.generation += 1
        data = self._file.read(BLOCK, self._open)
        if len(data) == BLOCK and not any(data) and self._is_behind_hole():
            return True
        self._take(data)
        return len(data) == BLOCK

    def _take(self, data: bytes) -> None:
        """Close the whole chunks in `data`, which begins at the open one; count what is in the open one at the end."""
        at = 0
        while len(data) - at >= _ENOUGH:
            size, paragraphs = _chunk_in(data[at : at + _ENOUGH])
            self._close(size, paragraphs)
            at += size
        if len(data) < BLOCK:
            rest = data[at:]
            chunks = self._begin_chunk()
            self._index.extent = _Extent(self._open + len(rest), chunks, self._first + sum(1 for _ in _pieces(rest)))

    def _close(self, size: int, paragraphs: int) -> None:
        index = self._index
        chunks = self._begin_chunk()
        index.ends.append(self._open + size)
        self._open += size
        self._first += paragraphs
        index.extent = _Extent(self._open, chunks, self._first)

    def _begin_chunk(self) -> int:
        """Remember where the open chunk begins, unless that is known; return how many chunks there are with it."""
        index = self._index
        if len(index.begins) == len(index.ends):
            index.begins.append(self._open)
            index.firsts.append(self._first)
        return len(index.begins)

    def _is_behind_hole(self) -> bool:
        """Go on behind the hole in the file that is here; return whether there is one."""
        behind, index = self._file.after_hole(self._open), self._index
        if behind == self._open:
            return False
        if len(index.begins) > len(index.ends):
            index.begins[-1] = behind
        self._open = behind
        index.extent = index.extent._replace(read=behind, paragraphs=self._first)
        return True

    def paragraph(self, number: int) -> tuple[ShownLine, ...]:
        """Return a line, or a part of one."""
        index = self._index
        chunk = bisect_right(index.firsts, number, 0, index.extent.chunks) - 1
        pieces = self._pieces_of(index, chunk) if chunk >= 0 else []
        place = number - index.firsts[chunk] if chunk >= 0 else 0
        return (ShownLine(_shown(pieces[place]) if place < len(pieces) else ""),)

    def _pieces_of(self, index: _ChunkIndex, chunk: int) -> list[bytes]:
        begin = index.begins[chunk]
        end = index.ends[chunk] if chunk < len(index.ends) else index.extent.read
        found = index.cached.get((begin, end))
        if found is None:
            found = list(_pieces(self._file.read(end - begin, begin)))
            index.cached[begin, end] = found
            while len(index.cached) > _CACHED:
                index.cached.popitem(last=False)
        return found

    def stretch(self, number: int) -> tuple[int, int]:
        """Return the paragraphs that are searched together: (the first, the one behind the last)."""
        index, (_, chunks, paragraphs) = self._index, self._index.extent
        chunk = bisect_right(index.firsts, number, 0, chunks) - 1
        return index.firsts[chunk], index.firsts[chunk + 1] if chunk + 1 < chunks else paragraphs

    def hits(self, needle: Needle, first: int, last: int) -> Iterator[Spot]:
        """Yield the lines with a needle, from paragraph `first` to before `last`, which are of one stretch."""
        index = self._index
        chunk = bisect_right(index.firsts, first, 0, index.extent.chunks) - 1
        begin = index.begins[chunk]
        end = index.ends[chunk] if chunk < len(index.ends) else index.extent.read
        data = self._file.read(end - begin, begin)
        if not needle.may_be_in(data):
            return
        for number, piece in enumerate(_pieces(data), index.firsts[chunk]):
            is_wanted = first <= number < last and needle.may_be_in(piece)
            if is_wanted and needle.is_in(ShownLine(_shown(piece)).drawn):
                yield Spot(number)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def _chunk_in(data: bytes) -> tuple[int, int]:
    """Return the size of the first chunk of `data`, which is long enough to tell, and how many paragraphs it has."""
    size = data.rfind(b"\n", 0, _CHUNK) + 1
    lines = data[:size].split(b"\n")
    if size and max(map(len, lines)) <= LONGEST_LINE:
        return size, len(lines) - 1
    size = paragraphs = 0
    for piece in _pieces(data):
        size, paragraphs = size + len(piece), paragraphs + 1
        if size >= _CHUNK:
            break
    return size, paragraphs


def _pieces(data: bytes) -> Iterator[bytes]:
    """Yield each line with its newline; a line that is too long in parts.

    It is cut behind the last carriage return, where a progress bar begins anew, or else before the character that would
    be divided.
    """
    at = 0
    while at < len(data):
        end = data.find(b"\n", at, at + LONGEST_LINE + 1) + 1
        if not end:
            end = at + LONGEST_LINE
            if end < len(data):
                end = data.rfind(b"\r", at, end) + 1 or _before_character(data, at, end)
        yield data[at:end]
        at = end


def _before_character(data: bytes, begin: int, end: int) -> int:
    """Return the last offset up to `end` at which no character of UTF-8 is divided."""
    for back in range(1, 4):
        byte = data[end - back]
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return end - back if length > back and end - back > begin else end
        if byte < 0x80:
            return end
    return end


def _shown(piece: bytes) -> str:
    """Return a piece as a terminal would show it in the end: of a line that returns to its start, what came last."""
    line = piece.rstrip(b"\r\n")
    return plain(line[line.rfind(b"\r") + 1 :].decode("utf-8", "backslashreplace"), keep="\t")
