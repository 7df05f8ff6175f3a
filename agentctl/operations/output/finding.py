"""Finds the rows of an output that have some words, as they are shown, for a certain time: then it says how far it got.

Most of an output is text with colours at most: of that only what has the words is looked at closely.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import AnyStr

from agentctl.adapters.clock import monotonic
from agentctl.adapters.opening import open_plain
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.text.terminal_output import TerminalOutput, TerminalRow, without_styles
from agentctl.lean import NamedTuple

#: So much is read at once, up to the end of a line.
_BLOCK = 1 << 20
#: So much is interpreted at once.
_PIECE = 1 << 16


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


def find_in_output(
    worker: WorkerDir, stream: str, words: str, *, begin: int = 0, line: int = 1, most: int, limit_s: float
) -> FoundRows:
    """Find words in an output, small letters and capitals alike.

    Args:
        stream: `stdout` or `stderr`.
        words: A text as it is within one row.
        begin: Where the line of the number `line` begins.
        most: After so many hits it ends, with the block in which they are.
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
            hits += _hits(block, at, line, words.lower())
            at, line = at + len(block), line + block.count(b"\n")
            if len(hits) >= most or monotonic() >= until:
                break
        return FoundRows(hits, at, line, size)
    finally:
        os.close(fd)


def _block(fd: int, at: int, size: int) -> bytes:
    data = os.pread(fd, min(_BLOCK, size - at), at)
    whole = data.rfind(b"\n") + 1
    return data[:whole] if whole and at + len(data) < size else data


def _hits(block: bytes, at: int, line: int, words: str) -> Iterator[RowHit]:
    """Yield the rows of some lines that have words, which are in small letters."""
    text = without_styles(block)
    if text is None or (b"\t" in text and " " in words) or (len(text) >= _BLOCK and b"\n" not in text):
        yield from _hits_in_rows(block, at, line, words)
    elif words.isascii():
        yield from _hits_in_lines(block, text.lower(), at, line, words.encode(), b"\n")
    else:
        yield from _hits_in_lines(block, text.decode("utf-8", "replace").lower(), at, line, words, "\n")


def _hits_in_rows(block: bytes, at: int, line: int, words: str) -> Iterator[RowHit]:
    counted = 0
    for row in _rows_of(block, TerminalOutput(at)):
        if words in row.text.lower():
            line += block.count(b"\n", counted, row.at - at)
            counted = row.at - at
            yield RowHit(row.at, line)


def _rows_of(block: bytes, terminal: TerminalOutput) -> Iterator[TerminalRow]:
    """Yield the rows of a block: there may be as many as it has bytes, so not all of them are kept at once."""
    for begin in range(0, len(block), _PIECE):
        terminal.feed(block[begin : begin + _PIECE])
        yield from terminal.settled()
    yield from terminal.rows()


def _hits_in_lines(block: bytes, text: AnyStr, at: int, line: int, words: AnyStr, newline: AnyStr) -> Iterator[RowHit]:
    """Yield the lines of a text that have words; its lines are those of the block."""
    begin = counted = 0
    found = text.find(words)
    while found >= 0:
        lines = text.count(newline, counted, found)
        counted = found
        for _ in range(lines):
            begin = block.index(b"\n", begin) + 1
        line += lines
        yield RowHit(at + begin, line)
        end = text.find(newline, found)
        found = -1 if end < 0 else text.find(words, end)
