"""The statuses of a worker, the moves between them, and the roster and task states that follow from them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Status(StrEnum):
    """Where a worker is in its life."""

    #: On disk and not started, or given back (parked). It waits for a slot, for other workers, or for its account.
    QUEUED = "queued"
    #: Its process runs (or is paused, or is between two attempts).
    RUNNING = "running"
    #: One of its questions is open and has a live asker.
    BLOCKED = "blocked"
    #: Ended by itself, successfully.
    COMPLETED = "completed"
    #: Ended in any other way; the reason says how.
    FAILED = "failed"
    #: Ended by a cancel; nothing of its process tree is alive.
    CANCELLED = "cancelled"

    # A member equals its text, so it needs the text's hash. Enum's own hash is a Python call on each table lookup.
    __hash__ = str.__hash__


class Reason(StrEnum):
    """Why a worker failed."""

    #: It exited with a code other than 0.
    EXIT_CODE = "exit_code"
    #: A signal that agentctl did not send ended it.
    SIGNAL = "signal"
    #: Its time limit passed.
    TIMED_OUT = "timed_out"
    #: Worker and shim are proven gone and nobody saw the exit.
    LOST = "lost"
    #: Its program could not be executed, or it died before it was executed.
    NOT_STARTED = "not_started"
    #: A worker that it waited for did not complete.
    DEPENDENCY = "dependency"
    #: It wrote more than `maxOutputBytes`.
    OUTPUT_LIMIT = "output_limit"
    #: An agent used up its turns.
    MAX_TURNS = "max_turns"
    #: An agent used up its money or tokens.
    BUDGET = "budget"
    #: The model declined to answer.
    REFUSED = "refused"
    #: A key or login is missing or was refused.
    AUTH = "auth"
    #: The account has no credit left, or no plan that includes the model.
    BILLING = "billing"
    #: The provider refuses further requests from this account for now.
    RATE_LIMITED = "rate_limited"
    #: The provider is overloaded, for every account.
    OVERLOADED = "overloaded"
    #: The conversation is longer than the model can read.
    CONTEXT = "context"
    #: The provider or its model failed.
    MODEL_ERROR = "model_error"
    #: The agent's answer or its stream was cut off.
    TRUNCATED = "truncated"
    #: A permission that was denied ended the agent.
    PERMISSION_DENIED = "permission_denied"
    #: The agent program is not installed.
    NOT_INSTALLED = "not_installed"
    #: Its final answer does not fit the requested schema.
    SCHEMA = "schema"


#: Not a status: a running worker that has given no sign of life for a while: no output, activity or report. A wait can
#: ask for this too.
STALLED = "stalled"
#: Not a status either: a worker that is back in the queue until its account may be used.
PARKED = "parked"
#: Nor this: a worker in a queue that nobody moves any more. Also a task of which nothing else is live.
STRANDED = "stranded"
#: Nor this: a worker that stays in the queue until its queue is let go. Also a task of which nothing else is live.
HELD = "held"
#: Nor this: a worker or a task whose files cannot be read.
UNKNOWN = "unknown"
#: The policy by which the settings that a person has made in an agent program count as well: what they allow there is
#: not asked about. What the program asks all the same is asked.
OWN = "own"


class EndStatus(StrEnum):
    """What a wait is told of a worker: the status with which it has ended, or what else ends a wait."""

    COMPLETED = Status.COMPLETED.value
    FAILED = Status.FAILED.value
    CANCELLED = Status.CANCELLED.value
    BLOCKED = Status.BLOCKED.value
    STALLED = STALLED
    PARKED = PARKED


TERMINAL = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})


class ChildrenAtEnd(StrEnum):
    """What happens to workers that outlive the worker that started them."""

    #: The parent's end is reported after theirs; its slot is lent meanwhile.
    WAIT = "wait"
    #: They are cancelled.
    CANCEL = "cancel"
    #: They keep running.
    LEAVE = "leave"


#: status -> the statuses it can move to. The projection ignores any other move.
MOVES: dict[Status, frozenset[Status]] = {
    Status.QUEUED: frozenset({Status.RUNNING}) | TERMINAL,
    Status.RUNNING: frozenset({Status.BLOCKED, Status.QUEUED}) | TERMINAL,
    Status.BLOCKED: frozenset({Status.RUNNING, Status.BLOCKED, Status.QUEUED}) | TERMINAL,
    Status.COMPLETED: frozenset(),
    Status.FAILED: frozenset(),
    Status.CANCELLED: frozenset(),
}

ROSTER_STATE: dict[Status, str] = {
    Status.QUEUED: "pending",
    Status.RUNNING: "active",
    Status.BLOCKED: "awaiting",
    Status.COMPLETED: "completed",
    Status.FAILED: "failed",
    Status.CANCELLED: "failed",
}


def task_state(statuses: Iterable[Status], *, at_rest: str | None = None) -> str:
    """Return the state of a task whose workers have these statuses.

    Args:
        at_rest: Why its queue rests, `stranded` or `held`; None if it does not.

    >>> task_state([])
    'created'
    >>> task_state([Status.COMPLETED, Status.BLOCKED])
    'input-required'
    >>> task_state([Status.COMPLETED, Status.CANCELLED])
    'canceled'
    >>> task_state([Status.COMPLETED, Status.QUEUED], at_rest=STRANDED)
    'stranded'
    """
    present = set(statuses)
    if not present:
        return "created"
    if Status.BLOCKED in present:
        return "input-required"
    if present & {Status.QUEUED, Status.RUNNING}:
        return at_rest if at_rest and Status.RUNNING not in present else "working"
    if Status.FAILED in present:
        return "failed"
    return "canceled" if Status.CANCELLED in present else "completed"


#: The states of a task that have a word of their own in files and in JSON -> the status that is the same.
_TASK_STATUS = {
    "working": Status.RUNNING.value, "input-required": Status.BLOCKED.value, "canceled": Status.CANCELLED.value,
}  # fmt: skip


def task_status(state: str) -> str:
    """Return the state of a task in the word that a person reads: that of a status, where one says the same.

    >>> [task_status(state) for state in ("working", "input-required", "canceled", "failed", "created")]
    ['running', 'blocked', 'cancelled', 'failed', 'created']
    """
    return _TASK_STATUS.get(state, state)
