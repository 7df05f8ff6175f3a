"""Where a worker can be in its life, and what follows for the roster and the task."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Status(StrEnum):
    """Where a worker is in its life."""

    #: Accepted, on disk, not started, or given back (parked): it waits for a slot, for other workers, its account.
    QUEUED = "queued"
    #: Its process runs (or is paused, or is between two attempts).
    RUNNING = "running"
    #: An open question of it has somebody who waits for the answer.
    BLOCKED = "blocked"
    #: Ended by itself, successfully.
    COMPLETED = "completed"
    #: Ended otherwise; the reason says how.
    FAILED = "failed"
    #: Ended by a cancel; nothing of its process tree is alive.
    CANCELLED = "cancelled"

    # Equal to its text, so with its hash; an enumeration's own is a call in Python, for each look into a table.
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
    #: A worker that it was to start after did not complete.
    DEPENDENCY = "dependency"
    #: It wrote more than `maxOutputBytes`.
    OUTPUT_LIMIT = "output_limit"
    #: An agent used up its turns.
    MAX_TURNS = "max_turns"
    #: An agent used up its money or tokens.
    BUDGET = "budget"
    #: The model declined to answer.
    REFUSED = "refused"
    #: A key or login that is missing or was refused.
    AUTH = "auth"
    #: The provider is not paid: no credit is left, or no plan that has it.
    BILLING = "billing"
    #: The provider takes no more requests of this account now.
    RATE_LIMITED = "rate_limited"
    #: The provider has too much to do, whoever asks.
    OVERLOADED = "overloaded"
    #: The conversation is longer than the model can read.
    CONTEXT = "context"
    #: The provider or its model failed.
    MODEL_ERROR = "model_error"
    #: The agent's answer or its stream was cut.
    TRUNCATED = "truncated"
    #: A permission that was denied ended the agent.
    PERMISSION_DENIED = "permission_denied"
    #: The agent program is not there.
    NOT_INSTALLED = "not_installed"
    #: Its final answer does not fit the schema that was asked for.
    SCHEMA = "schema"


#: No status: a running worker that has put nothing out for a while. A wait may be for that too.
STALLED = "stalled"
#: No status either: a worker that is in the queue again until its account may be used.
PARKED = "parked"

TERMINAL = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})


class ChildrenAtEnd(StrEnum):
    """What becomes of the workers that a worker started and that outlive it."""

    #: Its end is told once theirs are; its slot is lent meanwhile.
    WAIT = "wait"
    #: They are cancelled.
    CANCEL = "cancel"
    #: They go on by themselves.
    LEAVE = "leave"


#: status -> the statuses it can move to. What is not listed is ignored by the projection.
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


def task_state(statuses: Iterable[Status]) -> str:
    """Return the state of a task whose workers have these statuses.

    >>> task_state([])
    'created'
    >>> task_state([Status.COMPLETED, Status.BLOCKED])
    'input-required'
    >>> task_state([Status.COMPLETED, Status.CANCELLED])
    'canceled'
    """
    present = set(statuses)
    if not present:
        return "created"
    if Status.BLOCKED in present:
        return "input-required"
    if present & {Status.QUEUED, Status.RUNNING}:
        return "working"
    if Status.FAILED in present:
        return "failed"
    return "canceled" if Status.CANCELLED in present else "completed"
