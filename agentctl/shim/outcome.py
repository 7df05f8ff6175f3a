"""The outcome of one attempt of a worker: as its shim saw it, and for an agent as its driver reports it."""

from __future__ import annotations

from collections.abc import Sequence

from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.states import Reason, Status
from agentctl.lean import TYPE_CHECKING, Any, NamedTuple
from agentctl.supervision.worker.driver_end import DriverEnd, end_by_driver

if TYPE_CHECKING:
    from resource import struct_rusage


class Outcome(NamedTuple):
    """The outcome of an attempt, as the shim saw it."""

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
    """Return the resources that a process and its reaped children have used, as `exit.json` shows them."""
    return {
        "userSeconds": round(used.ru_utime, 3),
        "systemSeconds": round(used.ru_stime, 3),
        "maxRssKib": used.ru_maxrss,
    }


def agent_verdict(worker: WorkerDir, outcome: Outcome) -> DriverEnd:
    """Return how an attempt of an agent ended.

    An end by agentctl (a cancel, a limit) stays as it is. Otherwise the end that this attempt's driver reported counts;
    a driver that died without reporting one completed nothing.
    """
    if outcome.status is Status.CANCELLED or outcome.reason not in (None, Reason.EXIT_CODE, Reason.SIGNAL):
        return DriverEnd(outcome.status, outcome.reason, outcome.message)
    message = outcome.message or "its driver ended without reporting how the agent ended"
    return end_by_driver(worker) or DriverEnd(Status.FAILED, outcome.reason or Reason.TRUNCATED, message)
