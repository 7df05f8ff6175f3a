"""The states of a launch, as its stand-in sees it, as one table: what can happen in each, and which state follows.

    what happens | NEW         | SUBMITTED   | BEGUN       | ENDED
    -------------|-------------|-------------|-------------|------------
    RELEASED     | may begin   | may begin   |             |
    REFUSED      | waits       | waits       |             |
    SUBMITTED    | SUBMITTED   | once more   | once more   | once more
    DROPPED      |             | judged anew |             |
    CLAIMED      | BEGUN       | BEGUN       |             |
    UNSEEN       |             |             | ENDED       |
    INTERRUPTED  | interrupted | interrupted | interrupted | interrupted
    UNREACHED    | to do again | to do again | to do again | to do again

An empty cell changes nothing. `SUBMITTED` may come after `CLAIMED`: the node may begin before the engine has answered.
Both of them change what the engine's answers are about, so the launch is judged anew (`sightings` says how). The
verdict, which ends all of this, is a file.
"""

from __future__ import annotations

from enum import IntEnum

from agentctl.domain.worker.sightings import MOST_SUBMISSIONS, LaunchFinding, Sighting, Watched, looked
from agentctl.lean import NamedTuple

#: After the engine has refused a launch, or was down.
_PAUSE_S = 5.0


class LaunchPhase(IntEnum):
    """How far a launch has come."""

    #: The engine has not taken it yet.
    NEW = 0
    #: The engine has taken it, and no node has claimed it.
    SUBMITTED = 1
    #: A node has claimed it.
    BEGUN = 2
    #: Its node has told its end, and not all that the worker has written is seen at the head.
    ENDED = 3


class LaunchNews(IntEnum):
    """What can happen to a launch."""

    #: Its worker has a slot.
    RELEASED = 0
    #: The engine has not taken it.
    REFUSED = 1
    #: The engine has taken it.
    SUBMITTED = 2
    #: The engine has forgotten or dropped it before it began, and is to be given it again.
    DROPPED = 3
    #: A node has claimed it.
    CLAIMED = 4
    #: Its node has told its end, and not all that the worker has written is seen at the head.
    UNSEEN = 5
    #: The engine is told of a cancel.
    INTERRUPTED = 6
    #: The engine could not be told.
    UNREACHED = 7


class LaunchState(NamedTuple):
    """The state of a launch."""

    phase: LaunchPhase = LaunchPhase.NEW
    #: How often the engine has taken it; 0 only while it is `NEW`, or was begun before the engine said so.
    submissions: int = 0
    #: Its worker has no slot yet; only while it is `NEW` or `SUBMITTED`.
    is_held: bool = False
    #: The engine was told of a cancel. That is only faster: the node finds the request in a file, too.
    is_interrupted: bool = False
    #: When it may be submitted next, in monotonic seconds.
    submission_due: float = 0.0
    #: What is concluded from what the engine says of it.
    watched: Watched = Watched()
    #: Since when it has `ENDED`, in monotonic seconds; 0 before.
    unseen_since: float = 0.0

    @property
    def has_begun(self) -> bool:
        """Whether a node has claimed it."""
        return self.phase >= LaunchPhase.BEGUN

    @property
    def is_calm(self) -> bool:
        """Whether it waits or runs elsewhere, and nobody doubts that."""
        is_elsewhere = self.phase is LaunchPhase.BEGUN or (self.phase is LaunchPhase.SUBMITTED and not self.is_held)
        return is_elsewhere and self.watched.finding in (LaunchFinding.WAITING, LaunchFinding.RUNNING)

    @property
    def may_be_submitted_again(self) -> bool:
        """Whether it has not been submitted too often."""
        return self.submissions < MOST_SUBMISSIONS


def taken_up(submissions: int, *, is_held: bool) -> LaunchState:
    """Return the state of a launch before the first look at it.

    Args:
        submissions: How often the engine has taken it from another stand-in.
    """
    phase = LaunchPhase.SUBMITTED if submissions else LaunchPhase.NEW
    return LaunchState(phase, submissions, is_held=is_held)


def launch_after(state: LaunchState, news: LaunchNews, now: float = 0.0) -> LaunchState:
    """Return the state that follows when something happens.

    Args:
        now: Monotonic seconds.

    >>> state = launch_after(LaunchState(is_held=True), LaunchNews.SUBMITTED)
    >>> state.phase.name, state.submissions, state.is_calm, launch_after(state, LaunchNews.RELEASED).is_calm
    ('SUBMITTED', 1, False, True)
    >>> state = launch_after(state, LaunchNews.CLAIMED)
    >>> state.phase.name, state.is_held, launch_after(state, LaunchNews.DROPPED) == state
    ('BEGUN', False, True)
    """
    phase, has_begun = state.phase, state.has_begun
    match news:
        case LaunchNews.RELEASED if not has_begun:
            return state._replace(is_held=False)
        case LaunchNews.REFUSED if not has_begun:
            return state._replace(submission_due=now + _PAUSE_S)
        case LaunchNews.SUBMITTED:
            submitted = max(phase, LaunchPhase.SUBMITTED)
            return state._replace(phase=submitted, submissions=state.submissions + 1, watched=Watched())
        case LaunchNews.DROPPED if phase is LaunchPhase.SUBMITTED:
            return state._replace(watched=Watched())
        case LaunchNews.CLAIMED if not has_begun:
            return state._replace(phase=LaunchPhase.BEGUN, is_held=False, watched=Watched())
        case LaunchNews.UNSEEN if phase is LaunchPhase.BEGUN:
            return state._replace(phase=LaunchPhase.ENDED, unseen_since=now)
        case LaunchNews.INTERRUPTED | LaunchNews.UNREACHED:
            return state._replace(is_interrupted=news is LaunchNews.INTERRUPTED)
    return state


def after_engine_answer(
    state: LaunchState, seen: Sighting, at: float, *, silent_s: float, apart_s: float, silence_s: float
) -> LaunchState:
    """Return the state after an answer of the engine; the arguments are those of `sightings.looked`."""
    watched = looked(
        state.watched, seen, at,
        has_begun=state.has_begun, silent_s=silent_s, apart_s=apart_s, silence_s=silence_s,
    )  # fmt: skip
    return state._replace(watched=watched)
