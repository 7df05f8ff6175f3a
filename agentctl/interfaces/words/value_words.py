"""Values in a person's words: a duration, a time of day, a large number."""

from __future__ import annotations

import json
from typing import Any

from agentctl.domain.text.plaintext import ESCAPES

#: What an empty column shows.
NOTHING = "-"
#: What stands before a figure that is the least that it was.
LEAST = "≥"
#: The escapes of JSON for the characters that a terminal obeys.
JSON_ESCAPES = {code: f"\\u{code:04x}" for code in ESCAPES if code >= 0x7F}


def shown_json(value: Any) -> str:
    """Return a value as compact JSON that is safe to show, as part of a text for a person."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(JSON_ESCAPES)


def duration(seconds: float | None) -> str:
    """Return a time as a person would say it.

    >>> [duration(value) for value in (None, 4.25, 65, 7384)]
    ['-', '4.2s', '1m05s', '2h03m']
    """
    if seconds is None:
        return NOTHING
    if seconds < 60:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest:02}s" if minutes < 60 else f"{minutes // 60}h{minutes % 60:02}m"


def local_time(stamp: object) -> str:
    """Return a time stamp as a wall clock shows it, with the day if that is not today."""
    from datetime import datetime

    try:
        at = datetime.fromisoformat(str(stamp)).astimezone()
    except (ValueError, OverflowError, OSError):
        return "?"  # a line of the log that someone else wrote
    return at.strftime("%H:%M" if at.date() == datetime.now().astimezone().date() else "%a %d %b %H:%M")


def short_number(value: int) -> str:
    """Return a number as a person says it.

    >>> [short_number(value) for value in (0, 950, 9097, 125_476, 3_400_000)]
    ['0', '950', '9.1k', '125k', '3.4M']
    """
    for unit, size in (("M", 1_000_000), ("k", 1000)):
        if value >= size:
            scaled = value / size
            return f"{scaled:.1f}{unit}" if scaled < 100 else f"{scaled:.0f}{unit}"
    return str(value)
