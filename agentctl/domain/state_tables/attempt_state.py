"""The states of one attempt of a worker, as one table: what can happen in each, and which state follows.

    what happens | RUNNING  | HELD     | STOPPING | SWEEPING
    -------------|----------|----------|----------|----------------------------
    PAUSED       | paused   | paused   |          |
    UNPAUSED     | goes on  | goes on  |          |
    CANCEL_HELD  | HELD     |          |          |
    CANCELLED    | STOPPING | STOPPING | hurries  |
    LIMIT        | STOPPING |          | hurries  | is the cause, or hurries
    EXITED       | SWEEPING | SWEEPING | SWEEPING |

An empty cell changes nothing. The first cause wins: a limit met during a cancel does not turn it into a failure, and
once the leader has exited, a cancel no longer changes how the worker ended.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from agentctl.domain.states import Reason, Status
from agentctl.domain.worker.escalation import Escalation, Stage, advance, begin, hurried
from agentctl.lean import NamedTuple


class AttemptPhase(IntEnum):
    """How far an attempt has come."""

    #: Its leader runs, and nobody wants it stopped.
    RUNNING = 0
    #: Its leader runs, and its cancel waits until the workers that it has started have ended.
    HELD = 1
    #: Its leader runs, and an escalation stops it.
    STOPPING = 2
    #: Its leader has exited; what it left behind is being stopped.
    SWEEPING = 3


class Happening(IntEnum):
    """What can happen to an attempt."""

    PAUSED = 0
    UNPAUSED = 1
    #: A cancel is on disk, and workers that this one has started have not ended.
    CANCEL_HELD = 2
    #: A cancel is on disk, or its task was removed.
    CANCELLED = 3
    LIMIT = 4
    #: Its leader has exited.
    EXITED = 5


class Cause(NamedTuple):
    """Why an attempt is stopped, and the grace period of its escalation."""

    #: `Status.CANCELLED`, or the reason of its failure.
    why: Reason | Status
    grace_s: float
    message: str | None = None


class AttemptState(NamedTuple):
    """The state of an attempt."""

    phase: AttemptPhase = AttemptPhase.RUNNING
    #: Unset while it is `RUNNING` or `HELD`, always set while it is `STOPPING`.
    cause: Cause | None = None
    #: Unset while it is `RUNNING` or `HELD`, always set while it is `STOPPING`; in a sweep, set once a signal was sent.
    escalation: Escalation | None = None
    #: Its processes are stopped; only while it is `RUNNING` or `HELD`.
    is_paused: bool = False

    @property
    def stage(self) -> Stage:
        """Return how far its escalation has come."""
        return Stage.NONE if self.escalation is None else self.escalation.stage


def after(state: AttemptState, happening: Happening, now: float = 0.0, cause: Cause | None = None) -> AttemptState:
    """Return the state that follows when something happens.

    Args:
        now: Monotonic seconds.
        cause: For `CANCELLED` and `LIMIT`; for `EXITED` if a cancel was on disk when the leader exited.

    >>> state = after(AttemptState(is_paused=True), Happening.CANCELLED, 0, Cause(Status.CANCELLED, grace_s=5))
    >>> state.phase.name, state.stage.name, state.is_paused
    ('STOPPING', 'INTERRUPT', False)
    >>> after(state, Happening.LIMIT, 1, Cause(Reason.TIMED_OUT, grace_s=2)).escalation.due
    3
    """
    step = _TABLE[state.phase].get(happening)
    return state if step is None else step(state, now, cause)


def advanced(state: AttemptState, now: float, sweep_grace_s: float) -> AttemptState:
    """Return the state with the next stage of its escalation, if that is due; a sweep begins with SIGTERM at once."""
    if state.phase is AttemptPhase.SWEEPING and state.stage < Stage.TERMINATE:
        grace_s = sweep_grace_s if state.escalation is None else state.escalation.grace_s
        return state._replace(escalation=begin(now, grace_s, Stage.TERMINATE))
    if state.escalation is None:
        return state
    return state._replace(escalation=advance(state.escalation, now))


def _pause(state: AttemptState, now: float, cause: Cause | None) -> AttemptState:
    return state._replace(is_paused=True)


def _unpause(state: AttemptState, now: float, cause: Cause | None) -> AttemptState:
    return state._replace(is_paused=False)


def _hold(state: AttemptState, now: float, cause: Cause | None) -> AttemptState:
    return state._replace(phase=AttemptPhase.HELD)


def _stop(state: AttemptState, now: float, cause: Cause | None) -> AttemptState:
    assert cause is not None
    return AttemptState(AttemptPhase.STOPPING, cause, begin(now, cause.grace_s))


def _hurry(state: AttemptState, now: float, cause: Cause | None) -> AttemptState:
    if state.escalation is None or cause is None:
        return state
    return state._replace(escalation=hurried(state.escalation, now, cause.grace_s))


def _sweep(state: AttemptState, now: float, cause: Cause | None) -> AttemptState:
    return AttemptState(AttemptPhase.SWEEPING, state.cause or cause, state.escalation)


def _blame(state: AttemptState, now: float, cause: Cause | None) -> AttemptState:
    return state._replace(cause=cause) if state.cause is None else _hurry(state, now, cause)


_Step = Callable[[AttemptState, float, "Cause | None"], AttemptState]
_TABLE: dict[AttemptPhase, dict[Happening, _Step]] = {
    AttemptPhase.RUNNING: {
        Happening.PAUSED: _pause, Happening.UNPAUSED: _unpause, Happening.CANCEL_HELD: _hold,
        Happening.CANCELLED: _stop, Happening.LIMIT: _stop, Happening.EXITED: _sweep,
    },
    AttemptPhase.HELD: {
        Happening.PAUSED: _pause, Happening.UNPAUSED: _unpause, Happening.CANCELLED: _stop, Happening.EXITED: _sweep,
    },
    AttemptPhase.STOPPING: {Happening.CANCELLED: _hurry, Happening.LIMIT: _hurry, Happening.EXITED: _sweep},
    AttemptPhase.SWEEPING: {Happening.LIMIT: _blame},
}  # fmt: skip
