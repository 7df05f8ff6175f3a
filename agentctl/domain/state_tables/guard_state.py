"""The states of a worker under the guard of a shim, as one table: what can happen in each, and which state follows.

    what happens    | QUEUED  | STARTED  | RETRYING
    ----------------|---------|----------|---------
    TAKEN_OVER      | STARTED |          |
    STARTED         | STARTED |          | STARTED
    RETRIED         |         | RETRYING |
    ACCOUNT_ON_HOLD | WAITING | PARKED   | PARKED
    DISK_REFUSED    | REFUSED | REFUSED  | REFUSED
    ENDED           | ENDED   | ENDED    | ENDED
    TASK_GONE       | GONE    | GONE     | GONE

An empty cell changes nothing. In each of the other states the shim is done with the worker, and nothing follows.
"""

from __future__ import annotations

from enum import IntEnum


class GuardState(IntEnum):
    """How far a shim has come with a worker."""

    #: This shim has started nothing: the worker's ticket is in the queue, or the worker is another shim's.
    QUEUED = 0
    #: The start of its latest attempt is in the log, and its ticket is gone.
    STARTED = 1
    #: That attempt has ended, and the start of the next one is not in the log yet.
    RETRYING = 2
    #: It waits in the queue for its account, which is on hold.
    WAITING = 3
    #: It is back in the queue for the same reason, after an attempt.
    PARKED = 4
    #: The disk refused what must be written before a start: it is in the queue, as before.
    REFUSED = 5
    #: Its end is on disk, if there is still a place for it.
    ENDED = 6
    #: Its task is gone, and with it the queue: nothing is written or started there any more.
    GONE = 7


class GuardHappening(IntEnum):
    """What can happen to a worker under guard."""

    #: It was found to be on a node, after its shim here was killed.
    TAKEN_OVER = 0
    STARTED = 1
    RETRIED = 2
    ACCOUNT_ON_HOLD = 3
    DISK_REFUSED = 4
    ENDED = 5
    TASK_GONE = 6


def following(state: GuardState, happening: GuardHappening) -> GuardState:
    """Return the state that follows when something happens.

    >>> following(GuardState.RETRYING, GuardHappening.ACCOUNT_ON_HOLD).name
    'PARKED'
    >>> following(GuardState.GONE, GuardHappening.DISK_REFUSED).name
    'GONE'
    """
    row = _TABLE[happening]
    return (row[state] if state < len(row) else None) or state


#: In the order of the states: what follows in each.
_TABLE: dict[GuardHappening, tuple[GuardState | None, ...]] = {
    GuardHappening.TAKEN_OVER: (GuardState.STARTED,),
    GuardHappening.STARTED: (GuardState.STARTED, None, GuardState.STARTED),
    GuardHappening.RETRIED: (None, GuardState.RETRYING),
    GuardHappening.ACCOUNT_ON_HOLD: (GuardState.WAITING, GuardState.PARKED, GuardState.PARKED),
    GuardHappening.DISK_REFUSED: (GuardState.REFUSED,) * 3,
    GuardHappening.ENDED: (GuardState.ENDED,) * 3,
    GuardHappening.TASK_GONE: (GuardState.GONE,) * 3,
}
