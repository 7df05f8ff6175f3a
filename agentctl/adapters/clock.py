"""Time: wall time to show, and the monotonic clock (which stops while the machine sleeps) for every limit.

Nobody can set the clocks that count from boot, and all processes of a boot share them.
"""

from __future__ import annotations

import time
from functools import lru_cache

monotonic = time.monotonic


def since_boot() -> float:
    """Return the seconds since boot, including time asleep: for waits that depend on the world outside."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def now_iso() -> str:
    """Return the wall time as RFC 3339 in UTC with milliseconds: `2026-11-21T20:13:00.123Z`."""
    seconds, milliseconds = divmod(time.time_ns() // 1_000_000, 1000)
    return f"{_second(seconds)}.{milliseconds:03d}Z"


def iso_of(at: float) -> str:
    """Return an instant of the wall clock, given in seconds since 1970, in the form of `now_iso`."""
    seconds, milliseconds = divmod(round(at * 1000), 1000)
    return f"{_second(seconds)}.{milliseconds:03d}Z"


@lru_cache(maxsize=1)
def _second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
