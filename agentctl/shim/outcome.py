"""What came of one attempt of a worker, as its shim saw it."""

from __future__ import annotations

from collections.abc import Sequence

from agentctl.domain.states import Reason, Status
from agentctl.lean import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from resource import struct_rusage


class Outcome(NamedTuple):
    """What came of an attempt."""

    status: Status
    reason: Reason | None
    exit_code: int | None
    signal: str | None
    duration_s: float
    message: str | None = None
    swept: Sequence[dict[str, Any]] = ()
    kept: Sequence[dict[str, Any]] = ()
    usage: dict[str, float] | None = None


def usage_from(used: struct_rusage) -> dict[str, float]:
    """Return what a process and those that it waited for have used up, as `exit.json` tells it."""
    return {
        "userSeconds": round(used.ru_utime, 3),
        "systemSeconds": round(used.ru_stime, 3),
        "maxRssKib": used.ru_maxrss,
    }
