"""Pages of what a worker wrote, its output and its activity, by offsets in bytes: forwards and backwards, bounded."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from agentctl.adapters.opening import open_plain
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.activity.rows import read_line
from agentctl.domain.plaintext import whole
from agentctl.lean import NamedTuple

#: How much of an activity is read for one page, unless one row alone is longer.
_PAGE_BYTES = 1 << 19
_STEP = 1 << 16
#: A longer row is passed over. Drivers write none, but anybody may.
_LONGEST_ROW = 32 << 20
#: Texts within a row beyond this are cut, unless the whole row is wanted.
_LONGEST_TEXT, _MOST_ITEMS = 4000, 200


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
            skipped = _continuation(data) if start else 0
            return TextPage(data[skipped:], start + skipped, start + len(data), size)
        start = min(begin, size)
        data = os.pread(fd, limit, start)
        if start + len(data) < size:
            data = data[: len(data) - _unfinished(data)]
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


def _continuation(data: bytes) -> int:
    """Return how many bytes at the beginning belong to a character that began before."""
    return next((index for index, byte in enumerate(data[:4]) if byte & 0xC0 != 0x80), 0)


def _unfinished(data: bytes) -> int:
    """Return how many bytes at the end begin a character that goes on behind; 0 for what is no UTF-8."""
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

    A line that is no row is {offset, problem}.

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
            start, lines = _lines_before(fd, size if before is None else min(before, size), limit)
        else:
            start, lines = min(begin, size), list(_lines_from(fd, min(begin, size), size, limit))
    finally:
        os.close(fd)
    rows, at = [], start
    for line in lines:
        if line.strip():
            rows.append({**_row(line, is_whole=is_whole), "offset": at})
        at += len(line)
    return RowPage(rows, start, at, size)


def _row(line: bytes, *, is_whole: bool) -> dict[str, Any]:
    if len(line) > _LONGEST_ROW or read_line(line, 0) is None:
        return {"problem": "not a row of an activity: not JSON, or it has no type"}
    row: dict[str, Any] = json.loads(line)
    if is_whole:
        return {key: _whole(value) for key, value in row.items()}
    kept = _Cutting()
    return {**{key: kept.value(value) for key, value in row.items()}, "cut": kept.has_cut}


class _Cutting:
    """Cuts the values of a row, and knows whether it had to."""

    def __init__(self) -> None:
        self.has_cut = False

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            self.has_cut |= len(value) > _LONGEST_TEXT
            return whole(value[:_LONGEST_TEXT])
        if isinstance(value, list):
            self.has_cut |= len(value) > _MOST_ITEMS
            return [self.value(item) for item in value[:_MOST_ITEMS]]
        if isinstance(value, dict):
            self.has_cut |= len(value) > _MOST_ITEMS
            return {whole(key[:200]): self.value(item) for key, item in list(value.items())[:_MOST_ITEMS]}
        return value


def _whole(value: Any) -> Any:
    """Return a value in which no text has half of a character, which no answer could carry."""
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, list):
        return list(map(_whole, value))
    return {whole(key): _whole(item) for key, item in value.items()} if isinstance(value, dict) else value


def _lines_from(fd: int, start: int, size: int, limit: int) -> Iterator[bytes]:
    """Yield some committed lines from an offset on."""
    held = b""
    given = read = 0
    while start + read < size and given < limit:
        piece = os.pread(fd, _STEP, start + read)
        if not piece:
            return
        read += len(piece)
        *lines, rest = piece.split(b"\n")
        for line in lines:
            if given < limit:
                yield held + line + b"\n"
                held, given = b"", given + 1
        held += rest
        if read > _PAGE_BYTES and given:
            return


def _lines_before(fd: int, end: int, limit: int) -> tuple[int, list[bytes]]:
    """Return the last committed lines before an offset, and where the first of them begins."""
    start, data = end, b""
    while start > 0 and data.count(b"\n") <= limit and (end - start < _PAGE_BYTES or data.count(b"\n") < 2):
        if end - start > _LONGEST_ROW:
            break
        step = min(start, max(_STEP, end - start))
        start -= step
        data = os.pread(fd, step, start) + data
    lines = [line + b"\n" for line in data.split(b"\n")[:-1]]
    if start > 0 and lines:  # The first one may lack its beginning.
        start += len(lines.pop(0))
    for line in lines[:-limit]:
        start += len(line)
    return start, lines[-limit:]
