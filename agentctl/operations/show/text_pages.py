"""Pages of what a worker wrote, its output and its activity, by offsets in bytes: forwards and backwards, bounded."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from agentctl.adapters.opening import open_plain
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.activity.rows import read_line
from agentctl.domain.text.nesting import may_be_too_deep, shallow
from agentctl.domain.text.plaintext import whole
from agentctl.lean import NamedTuple

#: How much of an activity is read for one page, unless one row alone is longer.
_PAGE_BYTES = 1 << 19
_STEP = 1 << 16
#: A longer row is passed over. Drivers write none, but anybody may.
_LONGEST_ROW = 32 << 20
#: Texts within a row beyond this are cut, unless the whole row is wanted.
_LONGEST_TEXT, _MOST_ITEMS = 4000, 200
_LONGEST_KEY = 200
#: So many characters and values are in a row that is cut.
_MOST_OF_A_ROW = 64_000


class TextPage(NamedTuple):
    """A piece of a file: what was in it from `begin` to `end` when the file had `size` bytes."""

    data: bytes
    begin: int
    end: int
    size: int


class RowPage(NamedTuple):
    """Some rows of an activity."""

    rows: list[dict[str, Any]]
    begin: int
    end: int
    size: int


def page_of_output(worker: WorkerDir, stream: str, *, begin: int | None, before: int | None, limit: int) -> TextPage:
    """Return a page of a worker's output.

    No character of UTF-8 is cut at its edges, except at the end of what a worker has written so far.

    Args:
        stream: `stdout` or `stderr`.
        begin: Where it begins; or
        before: where it ends. With neither of them it is the last page.
        limit: How many bytes at most.
    """
    path = worker.stdout if stream == "stdout" else worker.stderr
    try:
        fd = open_plain(path)
    except FileNotFoundError:
        return TextPage(b"", 0, 0, 0)
    try:
        size = os.fstat(fd).st_size
        if begin is None:
            end = size if before is None else min(before, size)
            start = max(0, end - limit)
            data = os.pread(fd, end - start, start)
            skipped = bytes_begun_before(data) if start else 0
            return TextPage(data[skipped:], start + skipped, start + len(data), size)
        start = min(begin, size)
        data = os.pread(fd, min(limit, size - start), start)
        if start + len(data) < size:
            data = data[: len(data) - bytes_going_on(data)]
        return TextPage(data, start, start + len(data), size)
    finally:
        os.close(fd)


def output_between(worker: WorkerDir, stream: str, begin: int, end: int) -> bytes:
    """Return the bytes of a worker's output from one offset to another, as far as they are there."""
    try:
        fd = open_plain(worker.stdout if stream == "stdout" else worker.stderr)
    except FileNotFoundError:
        return b""
    try:
        return os.pread(fd, end - begin, begin)
    finally:
        os.close(fd)


def output_in_pieces(worker: WorkerDir, stream: str, end: int) -> Iterator[bytes]:
    """Yield the bytes of a worker's output up to an offset; fewer if it was cut meanwhile."""
    at = 0
    while at < end and (piece := output_between(worker, stream, at, min(end, at + _STEP))):
        at += len(piece)
        yield piece


def bytes_begun_before(data: bytes) -> int:
    """Return how many bytes at the beginning belong to a character that began before."""
    return next((index for index, byte in enumerate(data[:4]) if byte & 0xC0 != 0x80), 0)


def bytes_going_on(data: bytes) -> int:
    """Return how many bytes at the end begin a character that goes on behind; 0 for what is not UTF-8."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 != 0x80:
            length = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
            return back if length > back and len(data) > back else 0
    return 0


def page_of_activity(
    worker: WorkerDir, *, begin: int | None, before: int | None, limit: int, is_whole: bool = False
) -> RowPage:
    """Return a page of the rows of a worker's activity; each has the `offset` of its line.

    A line without a row is {offset, problem}.

    Args:
        begin: Where it begins, the offset of a line; or
        before: where it ends. With neither of them it is the last page.
        limit: How many rows at most.
        is_whole: Texts in them are not cut.
    """
    try:
        fd = open_plain(worker.activity)
    except FileNotFoundError:
        return RowPage([], 0, 0, 0)
    try:
        size = os.fstat(fd).st_size
        if begin is None:
            start = size if before is None else min(before, size)
            lines = _lines_before(fd, start, limit)
        else:
            start = min(begin, size)
            lines = list(_lines_from(fd, start, size, limit))
    finally:
        os.close(fd)
    rows = [{**_row(line.data, is_whole=is_whole), "offset": line.begin} for line in lines if line.data.strip()]
    if lines:
        return RowPage(rows, lines[0].begin, lines[-1].end, size)
    nothing = 0 if begin is None else start  # What precedes it is not a committed line.
    return RowPage(rows, nothing, nothing, size)


class _Line(NamedTuple):
    """A committed line of an activity."""

    begin: int
    end: int
    #: With its newline; of a line that is too long not the whole.
    data: bytes


_PASSED_OVER = b"(too long)\n"


def _row(line: bytes, *, is_whole: bool) -> dict[str, Any]:
    if line is _PASSED_OVER:
        return {"problem": f"longer than {_LONGEST_ROW} bytes"}
    if read_line(line, 0) is None:
        return {"problem": "not a row of an activity: not JSON, or it has no type"}
    row: dict[str, Any] = json.loads(line)
    if may_be_too_deep(line):
        row = shallow(row)
    if is_whole:
        return {key: _whole(value) for key, value in row.items()}
    kept = _Cutting()
    found = {key: kept.value(value, (key,)) for key, value in row.items()}
    return {**found, "cut": bool(kept.at), "cutAt": list(map(list, kept.at))}


class _Cutting:
    """Cuts the values of a row, and knows where it had to."""

    def __init__(self) -> None:
        #: The fields of the row that were cut, or what is in one; each once, in their order.
        self.at: dict[tuple[str, ...], None] = {}
        self._left = _MOST_OF_A_ROW

    def value(self, value: Any, at: tuple[str, ...]) -> Any:
        """Return a value, or as much of it as there is room for."""
        most = _LONGEST_TEXT if isinstance(value, str) else _MOST_ITEMS
        size = len(value) if isinstance(value, str | list | dict) else 0
        self._left -= min(size, most) if isinstance(value, str) else 1
        if size > most or self._left < 0:
            self.at[at] = None
        if self._left < 0:
            return None
        if isinstance(value, str):
            return whole(value[:most])
        if isinstance(value, list):
            return [self.value(item, at) for item in value[:most]]
        if isinstance(value, dict):
            if any(len(key) > _LONGEST_KEY for key in value):
                self.at[at] = None
            shown = [(whole(key[:_LONGEST_KEY]), item) for key, item in list(value.items())[:most]]
            return {key: self.value(item, (at[0], key) if len(at) == 1 else at) for key, item in shown}
        return value


def _whole(value: Any) -> Any:
    """Return a value in which no text has half of a character, which no answer could carry."""
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, list):
        return list(map(_whole, value))
    return {whole(key): _whole(item) for key, item in value.items()} if isinstance(value, dict) else value


def _lines_from(fd: int, start: int, size: int, limit: int) -> Iterator[_Line]:
    """Yield some committed lines from an offset on."""
    held: list[bytes] = []
    begin = at = start
    given = 0
    while at < size and given < limit and (at - start <= _PAGE_BYTES or not given):
        *lines, rest = os.pread(fd, min(_STEP, size - at), at).split(b"\n")
        if not lines and not rest:  # It was cut off meanwhile.
            return
        for line in lines[: limit - given]:
            end = at + len(line) + 1
            yield _Line(begin, end, b"".join([*held, line, b"\n"]) if end - begin <= _LONGEST_ROW else _PASSED_OVER)
            held, begin, at, given = [], end, end, given + 1
        at += len(rest)
        held = [*held, rest] if at - begin <= _LONGEST_ROW else []


def _lines_before(fd: int, end: int, limit: int) -> list[_Line]:
    """Return the last committed lines before an offset."""
    start, data, count = end, b"", 0
    while start > 0 and count <= limit and (end - start < _PAGE_BYTES or count < 2):
        if end - start > _LONGEST_ROW:
            return _before_much(fd, start, data, limit)
        step = min(start, max(_STEP, end - start))
        start -= step
        data = os.pread(fd, step, start) + data
        count = data.count(b"\n")
    lines = []
    for line in data.split(b"\n")[:-1]:
        size = len(line) + 1
        lines.append(_Line(start, start + size, line + b"\n" if size <= _LONGEST_ROW else _PASSED_OVER))
        start += size
    is_cut = bool(lines) and lines[0].begin > 0 and os.pread(fd, 1, lines[0].begin - 1) != b"\n"
    return lines[is_cut:][-limit:]


def _before_much(fd: int, start: int, data: bytes, limit: int) -> list[_Line]:
    """Return the last lines before an offset if they end with one that is too long.

    Args:
        start: Where what was read begins, somewhere within that line.
        data: What was read.
    """
    begin = start
    while begin > 0:
        step = min(begin, _STEP)
        newline = os.pread(fd, step, begin - step).rfind(b"\n")
        if newline >= 0:
            begin += newline + 1 - step
            break
        begin -= step
    end = start + data.rfind(b"\n") + 1
    # Without a newline it is not committed: those before it are wanted.
    return [_Line(begin, end, _PASSED_OVER)] if end > start else _lines_before(fd, begin, limit)
