"""How an agent ended, as its driver reports it. Written before the driver exits, so that no later kill loses it."""

from __future__ import annotations

from agentctl.adapters.files import read_known
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.states import Reason, Status
from agentctl.domain.text.plaintext import beginning
from agentctl.lean import NamedTuple

#: The longest message: it is shown wherever an end is shown.
_LONGEST = 4000


class DriverEnd(NamedTuple):
    """The end that a driver reported."""

    status: Status
    reason: Reason | None = None
    message: str | None = None


def end_by_driver(worker: WorkerDir) -> DriverEnd | None:
    """Return the end that the driver of the last attempt reported; None if it reported none, or for a command."""
    return end_of_attempt(worker, read_known(worker.process).get("pid"))


def end_of_attempt(worker: WorkerDir, pid: object) -> DriverEnd | None:
    """Return the end that a driver reported of the attempt whose first process has this pid, as worker.json says."""
    outcome = read_known(worker.outcome)
    if not outcome or outcome.get("pid") != pid:
        return None
    message = bounded_message(outcome["message"]) if isinstance(outcome.get("message"), str) else None
    if outcome.get("status") == Status.COMPLETED:
        return DriverEnd(Status.COMPLETED, None, message)
    return DriverEnd(Status.FAILED, _reason(outcome.get("reason")), message)


def bounded_message(message: str) -> str:
    """Return a message, cut to the longest that an end may have."""
    return beginning(message, _LONGEST, "...")


def _reason(name: object) -> Reason:
    try:
        return Reason(str(name))
    except ValueError:
        return Reason.EXIT_CODE
