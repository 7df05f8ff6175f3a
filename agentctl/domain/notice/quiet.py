"""Quiet hours: the part of each day in which a person is not told anything."""

from __future__ import annotations

import re

from agentctl.lean import NamedTuple

_FORM = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)\s*-\s*([01]?\d|2[0-3]):([0-5]\d)", re.ASCII)
_DAY = 24 * 60


class QuietHours(NamedTuple):
    """From when to when, in minutes since midnight; the end is not quiet any more. They may go over midnight."""

    begin: int
    end: int

    def covers(self, minute: int) -> bool:
        """Return whether a minute of the day is quiet.

        >>> night = QuietHours(22 * 60, 7 * 60)
        >>> night.covers(23 * 60), night.covers(6 * 60 + 59), night.covers(7 * 60)
        (True, True, False)
        """
        return (minute - self.begin) % _DAY < (self.end - self.begin) % _DAY


def parse_quiet(text: object) -> QuietHours:
    """Return the hours that a text names.

    >>> parse_quiet("22:00-07:00")
    QuietHours(begin=1320, end=420)

    Raises:
        ValueError: It is not of that form, or names no time at all.
    """
    found = _FORM.fullmatch(text.strip()) if isinstance(text, str) else None
    if found is None:
        raise ValueError(f'quiet must be of the form "22:00-07:00", not {text!r}')
    hours = QuietHours(int(found[1]) * 60 + int(found[2]), int(found[3]) * 60 + int(found[4]))
    if hours.begin == hours.end:
        raise ValueError(f"quiet begins when it ends: {text!r}")
    return hours


def in_words(hours: QuietHours) -> str:
    """Return the hours as they are written in a configuration.

    >>> in_words(QuietHours(1320, 420))
    '22:00-07:00'
    """
    return "-".join(f"{minute // 60:02d}:{minute % 60:02d}" for minute in hours)
