"""How much a worker needs a person: the order in which a person looks at many of them."""

from __future__ import annotations

from enum import IntEnum

from agentctl.domain.states import TERMINAL, Status
from agentctl.lean import TYPE_CHECKING

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import WorkerRow


class Need(IntEnum):
    """What a person has to do about a worker, the most pressing first."""

    #: It asks, and nobody else will answer.
    NEEDS_YOU = 0
    #: It has given an answer or changed files, and nobody has looked.
    REVIEW = 1
    #: It has failed, and nobody has looked.
    FAILED = 2
    WORKING = 3
    QUEUED = 4
    DONE = 5
    #: Its work was tried again, or is gone on with: another worker counts.
    EARLIER = 6


def need_of(row: WorkerRow, *, asks: bool, is_idle: bool, is_seen: bool, has_changes: bool) -> Need:
    """Return the need of a worker.

    Args:
        asks: A question of it is open, other than that with which an idle agent waits for its next message.
        is_idle: It is an agent that has answered and waits for a message.
        is_seen: Somebody has looked at its end.
        has_changes: It changed files in its worktree.
    """
    status = row["status"]
    if row.get("supersededBy") is not None:
        return Need.EARLIER
    if asks and status not in TERMINAL:
        return Need.NEEDS_YOU
    if is_idle:
        return Need.WORKING if is_seen else Need.REVIEW
    if status not in TERMINAL:
        return Need.QUEUED if status == Status.QUEUED else Need.WORKING
    if status == Status.FAILED:
        return Need.DONE if is_seen else Need.FAILED
    answers = row["driver"] is not None and status == Status.COMPLETED
    return Need.REVIEW if (has_changes or answers) and not is_seen else Need.DONE
