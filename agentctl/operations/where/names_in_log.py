"""Whose the names in a log are now: a worker that was removed has left its name to whoever comes next."""

from __future__ import annotations

from collections.abc import Iterable

from agentctl.adapters.eventlog import LogReader
from agentctl.adapters.files import AnyPath
from agentctl.domain.events import REMOVED, BadLine, Event, about, decode
from agentctl.domain.worker.removals import Accepted


def first_seq_of(log: Iterable[tuple[int, bytes]], instance: str) -> int:
    """Return the number of the line from which on a log, in blocks, is about the worker that has a name now."""
    first, number = 1, 0
    for _, lines in log:
        if any(True for _ in about(lines, instance, (REMOVED,))):
            of_it = (row for row in decode(lines, number + 1) if not isinstance(row, BadLine))
            first = max(seq for seq, event in of_it if _removes(event, instance)) + 1
        number += lines.count(b"\n") if lines else 1  # An empty piece stands for a line that is too long.
    return first


def _removes(event: Event, instance: str) -> bool:
    return event["type"] == REMOVED and event.get("agentInstance") == instance


def accepted_in(path: AnyPath) -> set[str]:
    """Return the names that workers have, by a log: not those of workers that were removed."""
    found = Accepted()
    for event in LogReader(path).events():
        found.take(event)
    return found.names
