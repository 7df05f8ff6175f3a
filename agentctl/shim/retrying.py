"""A worker's own retries: which ends are retried, after which pause, and what is kept of the previous attempt."""

from __future__ import annotations

import os
from collections.abc import Callable

from agentctl.adapters.clock import monotonic
from agentctl.adapters.files import to_json, write_whole
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.states import Reason
from agentctl.lean import Any
from agentctl.supervision.worker.endings import Decision
from agentctl.supervision.worker.spec import WorkerSpec

_LONGEST_BACK_OFF_S = 60.0
_TICK_S = 1.0
_TRIED_AGAIN = frozenset({Reason.EXIT_CODE, Reason.SIGNAL})
#: For an agent, only what may go better later: each attempt costs money.
_AGENT_TRIED_AGAIN = frozenset({Reason.RATE_LIMITED, Reason.OVERLOADED, Reason.MODEL_ERROR})


class WaitTooLong(Exception):
    """A worker would have to wait longer for another attempt than it may."""


def is_tried_again(spec: WorkerSpec, ending: Decision, own_attempts: int) -> bool:
    """Return whether this ending is retried, after `own_attempts` attempts that were not due to parking."""
    reasons = _TRIED_AGAIN if spec.order is None else _AGENT_TRIED_AGAIN
    return ending.reason in reasons and own_attempts <= spec.retries


def pause_after(spec: WorkerSpec, own_attempts: int) -> float:
    """Return the pause before the next attempt."""
    delay_s = float(spec.retry_delay_s * 2 ** (own_attempts - 1))
    return min(delay_s, _LONGEST_BACK_OFF_S) * _jitter()


def put_aside(worker: WorkerDir, ending: Decision, attempt: int, pause_s: float) -> dict[str, Any]:
    """Write the end of an attempt that is followed by another; return the payload of its event."""
    write_whole(worker.attempt_exit(attempt), to_json(ending.now().to_json()))
    failure = {"reason": ending.reason, "exitCode": ending.exit_code, "delaySeconds": round(pause_s, 3)}
    return {"attempt": attempt + 1, **failure}


def waited(
    is_cancelled: Callable[[], bool],
    pause_s: float,
    rest: Callable[[float], object],
    is_in_place: Callable[[], bool],
) -> bool:
    """Wait out a pause; return False if a cancel came first, or the worker's folder was removed."""
    until = monotonic() + pause_s
    while is_in_place() and not is_cancelled():
        left = until - monotonic()
        if left <= 0:
            return True
        rest(min(left, _TICK_S))
    return False


def _jitter() -> float:
    """Return a factor from 0.75 to 1.25, so that workers that failed together do not retry together."""
    return 0.75 + os.urandom(1)[0] / 510
