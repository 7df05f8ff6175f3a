"""How an agent ended, as its driver says: on disk before the driver ends, so it counts whoever is killed then."""

from __future__ import annotations

from agentctl.adapters.files import read_quietly
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.states import Reason, Status
from agentctl.lean import NamedTuple

#: Everybody who asks for an end is told its message.
_LONGEST = 4000


class DriverEnd(NamedTuple):
    """What a driver told."""

    status: Status
    reason: Reason | None = None
    message: str | None = None


def end_by_driver(worker: WorkerDir) -> DriverEnd | None:
    """Return what the driver of the last attempt told of its end; None where it told nothing, or is not an agent's."""
    outcome = read_quietly(worker.outcome)
    if not outcome or outcome.get("pid") != read_quietly(worker.process).get("pid"):
        return None
    message = bounded(outcome["message"]) if isinstance(outcome.get("message"), str) else None
    if outcome.get("status") == Status.COMPLETED:
        return DriverEnd(Status.COMPLETED, None, message)
    return DriverEnd(Status.FAILED, _reason(outcome.get("reason")), message)


def bounded(message: str) -> str:
    """Return a message as an end tells it."""
    return message if len(message) <= _LONGEST else f"{message[:_LONGEST]}..."


def _reason(name: object) -> Reason:
    try:
        return Reason(str(name))
    except ValueError:
        return Reason.EXIT_CODE
