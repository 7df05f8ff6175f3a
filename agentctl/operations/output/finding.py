"""Finds the rows of an output that have some words, as they are shown, for a certain time: then it says how far it got.

Most of an output is text with colours at most: of that only the lines that have the words are interpreted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import islice

from agentctl.adapters.clock import monotonic
from agentctl.adapters.opening import open_plain
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.text.terminal_output import TerminalOutput, TerminalRow, text_of_lines
from agentctl.lean import NamedTuple

#: So much is read at once, up to the end of a line.
_BLOCK = 1 << 20
#: So much is interpreted at once.
_PIECE = 1 << 16
#: No row has one of these.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
#: A line with a tab that may be longer than a row.
_LONG_WITH_TAB = re.compile(r"^(?=[^\n]{512})[^\n]*\t", re.MULTILINE)


class RowHit(NamedTuple):
    """A row that has the words."""

    #: Where it begins, in bytes of the file.
    at: int
    #: The number of its line; the first is 1.
    line: int


class FoundRows(NamedTuple):
    """What was found in a part of an output."""

    hits: list[RowHit]
    #: Up to where was looked, and the number of the line that begins there: from there it can go on.
    looked: int
    line: int
    size: int


class _Find(NamedTuple):
    hit: RowHit
    #: Where to begin to find it again: that row, or one above it into which nothing below has moved.
    again: RowHit


def find_in_output(
    worker: WorkerDir, stream: str, words: str, *, begin: int = 0, line: int = 1, most: int, limit_s: float
) -> FoundRows:
    """Find words in an output, small letters and capitals alike.

    Args:
        stream: `stdout` or `stderr`.
        words: A text as it is within one row.
        begin: Where the line of the number `line` begins, or a row of it.
        most: So many hits at most; those behind them are found from `looked` on.
        limit_s: After so long it ends; one block is always looked at.
    """
    try:
        fd = open_plain(worker.stdout if stream == "stdout" else worker.stderr)
    except FileNotFoundError:
        return FoundRows([], 0, 1, 0)
    try:
        size, until = os.fstat(fd).st_size, monotonic() + limit_s
        hits: list[RowHit] = []
        at = min(begin, size)
        while at < size:
            block = _block(fd, at, size)
            if not block:  # It was cut off meanwhile.
                break
            finds = list(islice(_finds(block, at, line, words.lower()), most - len(hits) + 1))
            if len(hits) + len(finds) > most:
                return _cut(hits, finds, size)
            hits += (one.hit for one in finds)
            at, line = at + len(block), line + block.count(b"\n")
            if len(hits) == most or monotonic() >= until:
                break
        return FoundRows(hits, at, line, size)
    finally:
        os.close(fd)


def _cut(hits: list[RowHit], finds: list[_Find], size: int) -> FoundRows:
    """Return what was found without the last one, and without those that are found again together with it."""
    last = finds.pop()
    kept = [*hits, *(one.hit for one in finds if one.hit.at < last.again.at)]
    if kept:
        return FoundRows(kept, *last.again, size)
    # More rows that are written over together than there may be hits: it goes on among them.
    return FoundRows([one.hit for one in finds], *last.hit, size)


def _block(fd: int, at: int, size: int) -> bytes:
    """Return what comes next: whole lines, or whole rows of a line that is longer."""
    data = os.pread(fd, min(_BLOCK, size - at), at)
    if at + len(data) == size:
        return data
    whole = data.rfind(b"\n") + 1
    if not whole:
        whole = max((row.at for row in _rows_of(data, at) if not row.is_tied), default=at) - at
    return data[:whole] or data  # One row has all of it: a progress bar.


def _finds(block: bytes, at: int, line: int, words: str) -> Iterator[_Find]:
    """Yield the rows of a block that have words, which are in small letters."""
    if _CONTROL.search(words):
        return
    text = text_of_lines(block)
    # What a tab shows is blanks, and less where a row is full.
    if text is None or ("\t" in text and (" " in words or _LONG_WITH_TAB.search(text))):
        yield from _finds_in_rows(block, at, line, words)
    else:
        yield from _finds_in_lines(block, text.lower(), at, line, words)


def _finds_in_rows(block: bytes, at: int, line: int, words: str) -> Iterator[_Find]:
    again = RowHit(at, line)
    counted = 0
    for row in _rows_of(block, at):
        line += block.count(b"\n", counted, row.at - at)
        counted = row.at - at
        hit = RowHit(row.at, line)
        again = again if row.is_tied else hit
        if words in row.text.lower():
            yield _Find(hit, again)


def _finds_in_lines(block: bytes, text: str, at: int, line: int, words: str) -> Iterator[_Find]:
    """Yield the rows of plain lines that have words, of which only the lines that have them are interpreted.

    Args:
        text: What the lines of the block show, in small letters.
    """
    begin = counted = 0
    found = text.find(words)
    while found >= 0:
        lines = text.count("\n", counted, found)
        counted = found
        for _ in range(lines):
            begin = block.index(b"\n", begin) + 1
        line += lines
        end = block.find(b"\n", begin) + 1
        yield from _finds_in_rows(block[begin : end or None], at + begin, line, words)
        next_line = text.find("\n", found)
        found = -1 if next_line < 0 else text.find(words, next_line)


def _rows_of(block: bytes, at: int) -> Iterator[TerminalRow]:
    """Yield the rows of a block: there may be as many as it has bytes, so not all of them are kept at once."""
    terminal = TerminalOutput(at)
    for begin in range(0, len(block), _PIECE):
        terminal.feed(block[begin : begin + _PIECE])
        yield from terminal.settled()
    yield from terminal.rows()
