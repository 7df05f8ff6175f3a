"""The circuit breaker of an agent: whether it has failed so often in a row that it is not started for a while."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agentctl.domain.states import Reason, Status
from agentctl.domain.tree.limits import Limits
from agentctl.lean import NamedTuple

#: Failures that point to the program, the account or the model, whatever the work was.
COUNTED = frozenset(
    {
        Reason.AUTH, Reason.MODEL_ERROR, Reason.NOT_INSTALLED, Reason.NOT_STARTED, Reason.EXIT_CODE, Reason.SIGNAL,
        Reason.TRUNCATED, Reason.BILLING,
    }
)  # fmt: skip
#: Failures that say nothing about those: a person or the machine stopped it. (A rate limit has its own cool-down.)
NEUTRAL = frozenset(
    {
        Reason.TIMED_OUT, Reason.LOST, Reason.DEPENDENCY, Reason.OUTPUT_LIMIT, Reason.RATE_LIMITED, Reason.BUDGET,
        Reason.OVERLOADED,
    }
)  # fmt: skip


class End(NamedTuple):
    """How a worker ended, or (without a status) that somebody closed the breaker of an agent."""

    #: Seconds since the epoch, to sort by.
    at: float
    agent: str
    status: Status | None = None
    reason: str | None = None


class Breaker(NamedTuple):
    """The latest failures of an agent in a row."""

    agent: str
    failures: int
    #: That of the last failure.
    reason: str

    def has_tripped(self, limits: Limits) -> bool:
        """Return whether there are too many failures."""
        return bool(limits.breaker_failures) and self.failures >= limits.breaker_failures

    def left(self, limits: Limits, age: float | None) -> float:
        """Return for how many more seconds the agent must not be started; 0 where it may be.

        Args:
            age: How long ago it failed last, as measured; None where that is unknown.
        """
        if age is None or not self.has_tripped(limits):
            return 0.0
        return max(0.0, limits.breaker_cooldown_seconds - age)


def breakers(ends: Iterable[End]) -> Mapping[str, Breaker]:
    """Return the failures in a row of each agent that has any.

    >>> row = [End(1, "plan", Status.FAILED, "auth"), End(2, "plan", Status.FAILED, "auth")]
    >>> breakers(row)["plan"].failures
    2
    >>> breakers([*row, End(3, "plan", Status.COMPLETED)])
    {}
    """
    found: dict[str, Breaker] = {}
    for end in sorted(ends, key=lambda end: end.at):
        if end.status is Status.FAILED and end.reason in COUNTED:
            before = found.get(end.agent)
            found[end.agent] = Breaker(end.agent, before.failures + 1 if before else 1, str(end.reason))
        elif end.status is not Status.CANCELLED and not (end.status is Status.FAILED and end.reason in NEUTRAL):
            found.pop(end.agent, None)
    return found
