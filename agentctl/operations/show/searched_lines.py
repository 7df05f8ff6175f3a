"""Finds the lines of a large file that may have what is looked for, by their bytes: few lines have to be decoded."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from agentctl.adapters.files import AnyPath
from agentctl.adapters.opening import open_plain, pieces
from agentctl.domain.text.textquery import TextQuery

#: A longer line is searched in pieces of this size: it is the most of a file that is in memory at once, twice.
LONGEST_LINE = 4 << 20
Stopped = Callable[[], bool]


def lines_that_may_match(path: AnyPath, query: TextQuery, stopped: Stopped) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file that may have all terms of a query: (offset, line without the newline).

    None where there is no file.

    Args:
        stopped: Asked at each block; once it returns True, nothing more is yielded.

    Raises:
        OddFile: It is not a plain file.
    """
    try:
        fd = open_plain(path)
    except FileNotFoundError:
        return
    try:
        offset = 0
        for block in _blocks(fd):
            if stopped():
                return
            for at, line in _candidates(block, query):
                yield offset + at, line
            offset += len(block)
    finally:
        os.close(fd)


def _blocks(fd: int) -> Iterator[bytes]:
    """Yield the content in blocks that end with a line, as far as lines are not longer than they may be."""
    rest = b""
    for _, piece in pieces(fd, 0, os.fstat(fd).st_size):
        data = rest + piece if rest else piece
        whole = data.rfind(b"\n") + 1
        if not whole and len(data) >= LONGEST_LINE:
            whole = len(data)
        if whole:
            yield data[:whole]
        rest = data[whole:]
    if rest:
        yield rest


def _candidates(block: bytes, query: TextQuery) -> Iterator[tuple[int, bytes]]:
    if not query.needles:
        at = 0
        for line in block.split(b"\n"):
            if line:
                yield at, line
            at += len(line) + 1
        return
    lowered = block.lower()
    if not query.may_be_in(lowered):
        return
    rarest = min(query.needles, key=lowered.count)
    at = lowered.find(rarest)
    while at >= 0:
        begin, end = lowered.rfind(b"\n", 0, at) + 1, lowered.find(b"\n", at)
        end = len(block) if end < 0 else end
        if query.may_be_in(lowered[begin:end]):
            yield begin, block[begin:end]
        at = lowered.find(rarest, end)
