"""Pages of the rows that an output shows, by offsets in bytes: from any place, forwards and backwards, bounded.

A page names where its rows begin, `begin`, which may be before the place that was asked for: what came later has
changed rows above it, of a progress bar for example. Whoever has rows from there on has these in their place.
"""

from __future__ import annotations

import os
import re
import threading
from collections import OrderedDict, deque
from collections.abc import Callable

from agentctl.adapters.opening import open_plain
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.text.terminal_output import ROWS, SpelledOutput, TerminalOutput, TerminalRow
from agentctl.lean import NamedTuple
from agentctl.operations.show.text_pages import bytes_begun_before, bytes_going_on

#: So much before a page is interpreted too, for colours that go on, and for what moves up into it.
_CONTEXT = 1 << 14
#: So far the beginning of a line is looked for; further back it is looked for only where a line was written over.
_LONGEST_LOOK, _LONGEST_BAR = 1 << 18, 64 << 20
#: Of a longer line that was written over again and again, only the beginning and the end are interpreted.
_HEAD, _TAIL = 1 << 16, 1 << 18
_STEP, _SHORT = 1 << 20, 1 << 14
#: So much is interpreted before it is looked which of its rows are of the page: a byte may be a row.
_PIECE = 1 << 16
#: What begins a line anew that is written over: a progress bar, or a sign that turns.
_RETURN = re.compile(rb"\r|\x1b\[1?G")
#: Of a page with more rows only the first ones are given; or the last ones, where it was asked for by its end.
MOST_ROWS = 600
#: Kept are so many terminals, each of so many cells at most.
_MOST_KEPT, _MOST_CELLS = 32, 1 << 15


#: Takes a file up to an offset, and returns the rows that are settled by then.
_Settled = Callable[[int, TerminalOutput | SpelledOutput, int], list[TerminalRow]]


class PageOfRows(NamedTuple):
    """Some rows of an output."""

    rows: list[TerminalRow]
    #: These are all rows from here on, up to `end`, where the next page begins.
    begin: int
    end: int
    #: That of the file.
    size: int


class KeptTerminals:
    """The terminals at the ends of the last pages: whoever follows an output goes on with one of them.

    It only saves work: without one, the output is interpreted from some way above on.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[int, int, int], TerminalOutput] = OrderedDict()
        self._lock = threading.Lock()

    def at(self, fd: int, end: int) -> TerminalOutput | None:
        """Return a terminal for what comes behind an offset of a file, if there is one."""
        with self._lock:
            found = self._kept.get(_key(fd, end))
            return None if found is None else found.copy()

    def keep(self, fd: int, terminal: TerminalOutput) -> None:
        """Keep a terminal, unless it is too large."""
        if terminal.cells > _MOST_CELLS:
            return
        with self._lock:
            self._kept[_key(fd, terminal.end)] = terminal
            self._kept.move_to_end(_key(fd, terminal.end))
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)


def _key(fd: int, end: int) -> tuple[int, int, int]:
    found = os.fstat(fd)
    return found.st_dev, found.st_ino, end


def rows_of_output(
    worker: WorkerDir, stream: str, *, begin: int | None, before: int | None, limit: int,
    kept: KeptTerminals | None = None, is_source: bool = False,
) -> PageOfRows:  # fmt: skip
    """Return a page of what an output shows.

    Args:
        stream: `stdout` or `stderr`.
        begin: Where it begins, any offset; or
        before: where it ends, the beginning of a row. With neither of them it is the last page.
        limit: How many bytes of the file at most, unless one row takes more.
        is_source: Nothing is interpreted: each line with its control characters spelled out.
    """
    try:
        fd = open_plain(worker.stdout if stream == "stdout" else worker.stderr)
    except FileNotFoundError:
        return PageOfRows([], 0, 0, 0)
    try:
        size = os.fstat(fd).st_size
        if begin is None:
            end = size if before is None else min(before, size)
            if is_source:
                return _last_of(_source_rows(fd, _page_start(fd, end, limit), end, size, _last_rows))
            return _last_of(_before(fd, end, size, limit, kept or KeptTerminals()))
        begin = min(begin, size)
        if is_source:
            start = _line_start(fd, begin, _SHORT)
            start = begin + bytes_begun_before(os.pread(fd, 4, begin)) if start is None else start
            return _first_of(_source_rows(fd, start, _page_end(fd, begin, size, limit), size, _first_rows))
        return _first_of(_from(fd, begin, size, limit, kept or KeptTerminals()))
    finally:
        os.close(fd)


def _first_of(page: PageOfRows) -> PageOfRows:
    if len(page.rows) <= MOST_ROWS:
        return page
    return page._replace(rows=page.rows[:MOST_ROWS], end=page.rows[MOST_ROWS].at)


def _last_of(page: PageOfRows) -> PageOfRows:
    rows = page.rows[-MOST_ROWS:]
    return page if len(rows) == len(page.rows) else page._replace(rows=rows, begin=rows[0].at)


# -- interpreted -------------------------------------------------------------------------------------------------------


def _from(fd: int, begin: int, size: int, limit: int, kept: KeptTerminals) -> PageOfRows:
    terminal = kept.at(fd, begin) or _terminal_at(fd, begin)
    terminal.note()
    end = _page_end(fd, begin, size, limit)
    rows = _first_rows(fd, terminal, end)
    is_cut = end < size and os.pread(fd, 1, end - 1) != b"\n"
    if is_cut and not rows and sum(row.at >= terminal.changed for row in terminal.rows()) == 1:
        _feed_bar(fd, terminal, _line_end(fd, end, size))
    return _page(fd, terminal, rows, size, kept)


def _before(fd: int, end: int, size: int, limit: int, kept: KeptTerminals) -> PageOfRows:
    start = _page_start(fd, end, limit)
    terminal = _bar_until(fd, end) if start else None
    if terminal is None:
        terminal = _terminal_at(fd, start)
        terminal.note()
        return _page(fd, terminal, _last_rows(fd, terminal, end), size, kept)
    return _page(fd, terminal, terminal.settled(), size, kept)


def _page(fd: int, terminal: TerminalOutput, settled: list[TerminalRow], size: int, kept: KeptTerminals) -> PageOfRows:
    begin = terminal.changed
    rows = [row for row in (*settled, *terminal.rows()) if row.at >= begin]
    kept.keep(fd, terminal)
    return PageOfRows(rows, begin, terminal.end, size)


def _terminal_at(fd: int, begin: int) -> TerminalOutput:
    """Return a terminal as it is at an offset: it has taken the line there, and some lines above."""
    line = _line_start(fd, begin)
    if line is None:
        return _bar_until(fd, begin) or TerminalOutput(begin + bytes_begun_before(os.pread(fd, 4, begin)))
    terminal = TerminalOutput((_line_start(fd, line - _CONTEXT) or line) if line > _CONTEXT else 0)
    _feed(fd, terminal, begin)
    terminal.settled()
    return terminal


def _bar_until(fd: int, end: int) -> TerminalOutput | None:
    """Return a terminal that has taken one long line up to an offset; None unless that is written over and over."""
    begin = max(0, end - _HEAD)
    data = os.pread(fd, end - begin, begin).removesuffix(b"\n").removesuffix(b"\r")
    if b"\n" in data or not _RETURN.search(data):
        return None
    terminal = TerminalOutput(_line_start(fd, max(begin, end - 1), _LONGEST_BAR) or 0)
    terminal.note()
    _feed(fd, terminal, min(end, terminal.end + _HEAD))
    _feed_bar(fd, terminal, end)
    return terminal


def _first_rows(fd: int, output: TerminalOutput | SpelledOutput, end: int) -> list[TerminalRow]:
    """Return the rows that settle up to an offset; if those are more than a page has, only its own and a few more."""
    rows: list[TerminalRow] = []
    while len(rows) <= MOST_ROWS + ROWS and _feed_piece(fd, output, end):
        rows += output.settled()
    return rows


def _last_rows(fd: int, output: TerminalOutput | SpelledOutput, end: int) -> list[TerminalRow]:
    """Return the rows that settle up to an offset; if those are more than a page has, only the last ones."""
    rows: deque[TerminalRow] = deque(maxlen=MOST_ROWS + 1)
    while _feed_piece(fd, output, end):
        rows += output.settled()
    return list(rows)


def _feed_piece(fd: int, output: TerminalOutput | SpelledOutput, end: int) -> bool:
    """Take what comes next, up to an offset; return whether there was anything."""
    data = os.pread(fd, max(0, min(_PIECE, end - output.end)), output.end)
    output.feed(data)
    return bool(data)


def _feed(fd: int, terminal: TerminalOutput, end: int) -> None:
    while terminal.end < end and (data := os.pread(fd, min(_STEP, end - terminal.end), terminal.end)):
        terminal.feed(data)


def _feed_bar(fd: int, terminal: TerminalOutput, end: int) -> None:
    """Take the rest of a line that is written over and over: what it shows in the end follows from its end."""
    tail = end - _TAIL
    if tail > terminal.end:
        found = _RETURN.search(os.pread(fd, _TAIL, tail))
        if found is None:
            return
        terminal.skip_to(tail + found.start())
    _feed(fd, terminal, end)


# -- the source --------------------------------------------------------------------------------------------------------


def _source_rows(fd: int, begin: int, end: int, size: int, settled: _Settled) -> PageOfRows:
    output = SpelledOutput(begin)
    rows = settled(fd, output, end)
    return PageOfRows([*rows, *output.rows()], begin, output.end, size)


# -- where lines are ---------------------------------------------------------------------------------------------------


def _page_end(fd: int, begin: int, size: int, limit: int) -> int:
    """Return where a page ends that begins at an offset: behind a line, or with the file, or where it is full."""
    if begin + limit >= size:
        return size
    data = os.pread(fd, limit, begin)
    return begin + (data.rfind(b"\n") + 1 or len(data) - bytes_going_on(data))


def _page_start(fd: int, end: int, limit: int) -> int:
    """Return where a page begins that ends at an offset: with a line, or with a character where none is so short."""
    if end <= limit:
        return 0
    data = os.pread(fd, limit, end - limit)
    at = data.find(b"\n", 0, len(data) - 1) + 1
    return end - limit + (at or bytes_begun_before(data))


def _line_start(fd: int, at: int, most: int = _LONGEST_LOOK) -> int | None:
    """Return where the line with an offset begins; None if that is further back than so many bytes."""
    end = at
    while end > max(0, at - most):
        begin = max(0, end - min(_STEP, most))
        newline = os.pread(fd, end - begin, begin).rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1
        end = begin
    return None if end else 0


def _line_end(fd: int, at: int, size: int) -> int:
    """Return where the line with an offset ends, behind its newline."""
    while at < size and (data := os.pread(fd, min(_STEP, size - at), at)):
        newline = data.find(b"\n")
        if newline >= 0:
            return at + newline + 1
        at += len(data)
    return at
