"""The scale of a time axis: where its marks are, from parts of a second to years."""

from __future__ import annotations

from collections.abc import Iterator

from agentctl.lean import NamedTuple

_MINUTE, _HOUR, DAY = 60, 3600, 86_400
#: The steps between marks up to a day, in seconds; above that 1, 2, 5, 10, ... days.
_STEPS = (
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, _MINUTE, 2 * _MINUTE, 5 * _MINUTE,
    10 * _MINUTE, 20 * _MINUTE, 30 * _MINUTE, _HOUR, 2 * _HOUR, 3 * _HOUR, 6 * _HOUR, 12 * _HOUR, DAY,
)  # fmt: skip
#: From this step on, marks are at round times of the clock; below it, at round times since the beginning.
_CLOCK_FROM = 10 * _MINUTE


class Scale(NamedTuple):
    """The marks of an axis, in seconds since 1970, in order."""

    #: Seconds between two marks.
    step: float
    #: Whether the marks are at round times of the clock, and not at round times since the beginning.
    is_clock: bool
    marks: tuple[float, ...]


def scale_of(began: float, until: float, most: int, utc_offset: float = 0) -> Scale:
    """Return the finest scale of at most `most` steps; at round times of the clock it may have no mark at the ends.

    Args:
        utc_offset: How many seconds the local clock is ahead of UTC.

    >>> scale_of(1000.0, 1003.2, 8)
    Scale(step=0.5, is_clock=False, marks=(1000.0, 1000.5, 1001.0, 1001.5, 1002.0, 1002.5, 1003.0))
    >>> scale_of(100.0, 3 * 86_400.0, 8)
    Scale(step=43200, is_clock=True, marks=(43200.0, 86400.0, 129600.0, 172800.0, 216000.0, 259200.0))
    """
    span = max(0.0, until - began)
    step = next(step for step in _steps() if span <= step * most)
    is_clock = step >= _CLOCK_FROM
    first = began if not is_clock else -(-(began + utc_offset) // step) * step - utc_offset
    count = 1 + int((until - first + step / 1000) // step) if until >= first else 0
    return Scale(step, is_clock, tuple(first + step * number for number in range(count)))


def _steps() -> Iterator[float]:
    yield from _STEPS
    power = DAY
    while True:
        yield from (2 * power, 5 * power, 10 * power)
        power *= 10
