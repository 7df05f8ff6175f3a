"""How long a tree of tasks was at work: the time in which at least one of its workers ran."""

from __future__ import annotations

import re
from collections.abc import Iterable

from agentctl.lean import NamedTuple

#: As agentctl writes it: RFC 3339 in UTC.
_INSTANT = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d(?:\.\d+)?)Z")


class Span(NamedTuple):
    """From one instant to another, in seconds since the epoch."""

    begin: float
    end: float


def instant(ts: object) -> float | None:
    """Return the time of an event in seconds since the epoch; None where it tells none.

    >>> instant("1970-01-01T00:01:00.500Z"), instant("2026-11-22T01:00:00Z"), instant("yesterday")
    (60.5, 1795309200.0, None)
    """
    found = _INSTANT.fullmatch(ts) if isinstance(ts, str) else None
    if found is None:
        return None
    year, month, day, hour, minute = map(int, found.groups()[:5])
    return ((_day_number(year, month, day) * 24 + hour) * 60 + minute) * 60 + float(found[6])


def _day_number(year: int, month: int, day: int) -> int:
    """Return how many days after 1970-01-01 a day is; a year counts from March, so that its leap day comes last."""
    year, month = (year, month - 3) if month > 2 else (year - 1, month + 9)
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 719_469


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
