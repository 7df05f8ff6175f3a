"""How a worker is made to stop: SIGINT, grace, SIGTERM, grace, SIGKILL, and what happens when even that fails."""

from __future__ import annotations

from enum import IntEnum

from agentctl.lean import NamedTuple

#: How long SIGKILL may take before the survivors are named; a process in an uninterruptible call outlives it.
KILL_LIMIT_S = 5.0


class Stage(IntEnum):
    """The last step of an escalation that was taken."""

    NONE = 0
    INTERRUPT = 1
    TERMINATE = 2
    KILL = 3
    #: SIGKILL was sent, and something is still alive.
    SURVIVORS = 4


class Escalation(NamedTuple):
    """A stage, the instant (monotonic seconds) at which the next one is due, and the pause between two stages."""

    stage: Stage
    due: float
    grace_s: float


def begin(now: float, grace_s: float, first: Stage = Stage.INTERRUPT) -> Escalation:
    """Return an escalation whose first step is taken now."""
    return Escalation(first, now + _limit_of(first, grace_s), grace_s)


def advance(step: Escalation, now: float) -> Escalation:
    """Return the next step if it is due, else the same.

    >>> advance(begin(0, 5), 4).stage.name, advance(begin(0, 5), 5).stage.name
    ('INTERRUPT', 'TERMINATE')
    """
    if now < step.due or step.stage is Stage.SURVIVORS:
        return step
    stage = Stage(step.stage + 1)
    return Escalation(stage, now + _limit_of(stage, step.grace_s), step.grace_s)


def hurried(step: Escalation, now: float, grace_s: float | None) -> Escalation:
    """Return a step with the shorter grace period of a later request; a longer one changes nothing.

    >>> hurried(begin(0, 5), 1, 2), hurried(begin(0, 5), 1, 9).due
    (Escalation(stage=<Stage.INTERRUPT: 1>, due=3, grace_s=2), 5)
    """
    if grace_s is None or grace_s >= step.grace_s:
        return step
    return Escalation(step.stage, min(step.due, now + _limit_of(step.stage, grace_s)), grace_s)


def _limit_of(stage: Stage, grace_s: float) -> float:
    return grace_s if stage < Stage.KILL else KILL_LIMIT_S


def whole_limit_s(grace_s: float) -> float:
    """Return the seconds after which a whole escalation has ended or named its survivors."""
    return 2 * grace_s + KILL_LIMIT_S
