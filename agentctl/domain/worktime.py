"""How long a tree of tasks was at work: the time in which at least one of its workers ran."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple


class Span(NamedTuple):
    """From one instant to another, in seconds since the epoch."""

    begin: float
    end: float


def instant(ts: object) -> float | None:
    """Return the time of an event in seconds since the epoch; None where it tells none.

    >>> instant("1970-01-01T00:01:00.500Z")
    60.5
    """
    try:
        return datetime.fromisoformat(ts).timestamp() if isinstance(ts, str) else None
    except (ValueError, OverflowError):
        return None


def covered_s(spans: Iterable[Span]) -> float:
    """Return how long at least one of the spans lasted; one that ends before it begins (a clock set back) is none.

    >>> covered_s([Span(0, 10), Span(5, 12), Span(20, 21), Span(9, 3)])
    13.0
    """
    seconds, until = 0.0, float("-inf")
    for begin, end in sorted(spans):
        if end > until:
            seconds += end - max(begin, until) if end > begin else 0.0
            until = max(until, end) if end > begin else until
    return seconds
