"""When workers were at work, as their shims measured it on the monotonic clock.

All processes of a boot share that clock, and nobody can set it. It stops while the machine sleeps, and its instants
mean nothing in another boot.
"""

from __future__ import annotations

from collections.abc import Iterable

from agentctl.lean import NamedTuple

#: More than any shim writes (`agentctl.shim.workclock`): a file with more was not written by a shim.
MOST_SPANS = 10_000
#: The bound for instants of another boot, whose length is unknown.
_LONGEST_BOOT_S = 1e9


class Span(NamedTuple):
    """From one instant of the monotonic clock to another."""

    begin: float
    end: float


class Worked(NamedTuple):
    """When a worker was at work, and in which boot."""

    boot: str = ""
    spans: tuple[Span, ...] = ()


def worked_from(value: object, boot: str, now: float, *, is_at_work: bool = False) -> Worked:
    """Return the spans in a file; an empty `Worked` where any of them is impossible.

    Args:
        boot: This boot; `now` is an instant in it.
        is_at_work: The measuring goes on: a span that has begun lasts until now.

    >>> worked_from({"boot": "b", "spans": [[1, 2]], "since": 5}, "b", 7, is_at_work=True).spans
    (Span(begin=1, end=2), Span(begin=5, end=7))
    >>> worked_from({"boot": "b", "spans": [[1, 9]]}, "b", 7), worked_from("yesterday", "b", 7)
    (Worked(boot='', spans=()), Worked(boot='', spans=()))
    """
    if not isinstance(value, dict) or not isinstance(value.get("boot"), str):
        return Worked()
    measured, since = value.get("spans", []), value.get("since")
    if not isinstance(measured, list) or len(measured) > MOST_SPANS:
        return Worked()
    rows = [*measured, [since, now]] if is_at_work and since is not None else measured
    latest = now if value["boot"] == boot else _LONGEST_BOOT_S
    spans = tuple(Span(row[0], row[1]) for row in rows if _is_span(row, latest))
    return Worked(value["boot"], spans) if len(spans) == len(rows) else Worked()


def _is_span(row: object, latest: float) -> bool:
    if not isinstance(row, (list, tuple)) or len(row) != 2 or not all(type(one) in (int, float) for one in row):
        return False
    return bool(0 <= row[0] <= row[1] <= latest)  # False for a number that is not finite.


def time_at_work(all_worked: Iterable[Worked]) -> float:
    """Return how long at least one of several workers was at work.

    >>> time_at_work([Worked("a", (Span(0, 10),)), Worked("a", (Span(5, 12),)), Worked("b", (Span(5, 6),))])
    13.0
    """
    boots: dict[str, list[Span]] = {}
    for worked in all_worked:
        boots.setdefault(worked.boot, []).extend(worked.spans)
    return sum(map(covered_s, boots.values()), 0.0)


def covered_s(spans: Iterable[Span]) -> float:
    """Return how much time the spans cover together; one that ends before it begins counts for nothing.

    >>> covered_s([Span(0, 10), Span(5, 12), Span(20, 21), Span(9, 3)])
    13.0
    """
    seconds, until = 0.0, float("-inf")
    for begin, end in sorted(spans):
        if end > max(begin, until):
            seconds += end - max(begin, until)
            until = end
    return seconds
