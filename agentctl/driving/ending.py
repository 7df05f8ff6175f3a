"""What a driver makes of the end of its program: why it could not be started, and its own exit code."""

from __future__ import annotations

import errno

from agentctl.domain.states import Reason
from agentctl.drivers.dialogue import Driver, Outcome

NATURAL, UNHAPPY, INTERRUPTED = 0, 1, 130


def not_started(program: str, driver: Driver, error: OSError) -> Outcome:
    """Return the outcome of a program that the system could not start."""
    problem = f"{program} could not be started: {error.strerror}"
    if isinstance(error, (FileNotFoundError, PermissionError, NotADirectoryError)):
        return Outcome(reason=Reason.NOT_INSTALLED, message=f"{problem}; {driver.install}")
    if error.errno == errno.E2BIG:
        problem += "; a long prompt goes to a program whose definition has promptOnStdin: true"
    return Outcome(reason=Reason.NOT_STARTED, message=problem)


def exit_code(outcome: Outcome, code: int, *, is_interrupted: bool) -> int:
    """Return the driver's exit code; `code` is the program's."""
    if is_interrupted:
        return INTERRUPTED
    if outcome.reason is Reason.EXIT_CODE and code > 0:
        return code
    return NATURAL if outcome.reason is None else UNHAPPY
