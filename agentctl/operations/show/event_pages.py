"""Pages of a task's events: from one of them on, or those before one; what is passed over is not parsed."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from typing import Any

from agentctl.adapters.eventlog import LONGEST_LINE, blocks
from agentctl.adapters.opening import open_plain
from agentctl.adapters.taskdir import TaskDir
from agentctl.domain.events import BadLine, decode
from agentctl.lean import NamedTuple
from agentctl.operations.where.locating import find_worker
from agentctl.operations.where.names_in_log import first_seq_of

#: Fewer events than were asked for are in a page of so many bytes.
_MOST_BYTES = 4 << 20


class EventPage(NamedTuple):
    """Some events of a task, each with its `seq`; a line that does not hold one is {seq, problem}."""

    events: list[dict[str, Any]]
    #: What `begin` has to be for what comes behind them.
    next: int
    #: Whether there are more behind them, and more before them, as far as that was looked at.
    more: bool
    earlier: bool


def page_of_events(
    task: TaskDir, *, begin: int | None = None, before: int | None = None, limit: int, instance: str | None = None
) -> EventPage:
    """Return a page of a task's events.

    Args:
        begin: The seq of the first one; or
        before: the seq behind the last one. With neither of them they are the first ones.
        limit: How many at most.
        instance: Only those about this worker.
    """
    if instance is not None:
        find_worker(task, instance)
    try:
        fd = open_plain(task.events)
    except FileNotFoundError:
        return EventPage([], begin or 1, more=False, earlier=False)
    try:
        if before is None:
            return _forwards(fd, max(1, begin or 1), limit, instance)
        return _backwards(fd, before, limit, instance)
    finally:
        os.close(fd)


def _forwards(fd: int, begin: int, limit: int, instance: str | None) -> EventPage:
    found: list[dict[str, Any]] = []
    following, size = begin, 0
    for seq, row, length in _rows(fd, begin, instance):
        if len(found) == limit or size > _MOST_BYTES:
            return EventPage(found, following, more=True, earlier=begin > 1)
        found.append(row)
        following, size = seq + 1, size + length
    return EventPage(found, following, more=False, earlier=begin > 1)


def _backwards(fd: int, before: int, limit: int, instance: str | None) -> EventPage:
    # Without a worker it is known where to begin; the events of one may be anywhere.
    begin = 1 if instance is not None else max(1, min(before, _count(fd) + 1) - limit)
    kept: deque[tuple[dict[str, Any], int]] = deque()
    count, following, more, size = 0, before, False, 0
    for seq, row, length in _rows(fd, begin, instance):
        if seq >= before:
            more = True
            break
        kept.append((row, length))
        count, following, size = count + 1, seq + 1, size + length
        while len(kept) > limit or (size > _MOST_BYTES and len(kept) > 1):
            size -= kept.popleft()[1]
    return EventPage([row for row, _ in kept], following, more, earlier=begin > 1 or count > len(kept))


def _count(fd: int) -> int:
    return sum(_lines_in(lines) for _, lines in blocks(fd, 0))


def _lines_in(lines: bytes) -> int:
    return lines.count(b"\n") if lines else 1  # An empty piece stands for a line that is too long.


def _rows(fd: int, begin: int, instance: str | None) -> Iterator[tuple[int, dict[str, Any], int]]:
    """Yield the events from a seq on, each with its seq and about how long it is."""
    needle = None
    if instance is not None:
        needle, begin = f'"{instance}"'.encode(), max(begin, first_seq_of(blocks(fd, 0), instance))
    first = 1
    for _, lines in blocks(fd, 0):
        count = _lines_in(lines)
        if first + count > begin and (needle is None or needle in lines):
            rows = decode(lines, first) if lines else [BadLine(first, f"longer than {LONGEST_LINE} bytes")]
            for row in rows:
                seq = row.seq if isinstance(row, BadLine) else row[0]
                if seq >= begin and (shown := _shown(row, instance)) is not None:
                    yield seq, shown, len(lines) // count
        first += count


def _shown(row: tuple[int, dict[str, Any]] | BadLine, instance: str | None) -> dict[str, Any] | None:
    if isinstance(row, BadLine):
        return None if instance is not None else {"seq": row.seq, "problem": row.problem}
    if instance not in (None, row[1].get("agentInstance")):
        return None
    return {"seq": row[0], **row[1]} | {"seq": row[0]}  # Whatever the line claims.
