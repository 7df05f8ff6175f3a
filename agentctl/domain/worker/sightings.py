"""What follows from what is seen of a worker on a node: it waits, runs, is gone, or nobody knows. Pure.

The order of truth: the end that the node wrote; then the node's claim and heartbeat; then what the engine says. An
engine that does not answer proves nothing. One that says that a launch is over may be wrong for a while (a controller
that was restarted, a node that is only cut off, a folder that a network file system shows late): so nothing is lost
before two answers that lie apart, and before the node has been silent for long.
"""

from __future__ import annotations

from enum import StrEnum

from agentctl.lean import NamedTuple

#: How often a launch is submitted that the engine has dropped before it began.
MOST_SUBMISSIONS = 3
#: How often a node gives a sign of life.
BEAT_S = 10.0


class EngineState(StrEnum):
    """What an engine says of a launch."""

    QUEUED = "queued"
    RUNNING = "running"
    #: It is over, however it went.
    ENDED = "ended"
    #: The engine has taken its place away before it was over: the node failed, or somebody else was to have it.
    DROPPED = "dropped"
    #: The engine knows no such launch.
    ABSENT = "absent"
    #: The engine does not answer, or not understandably.
    UNKNOWN = "unknown"


class Sighting(NamedTuple):
    """What an engine says of one launch."""

    state: EngineState
    #: In the engine's own words.
    words: str = ""
    node: str = ""
    reason: str = ""
    #: The engine's own name for it: only a hint, since engines use names again.
    job: str = ""


class LaunchFinding(StrEnum):
    """What is concluded of a launch."""

    WAITING = "waiting"
    RUNNING = "running"
    #: The engine says that it is gone; that is not believed yet.
    DOUBTED = "doubted"
    #: It has begun on a node, and is gone without an end.
    LOST = "lost"
    #: It never began, and never will.
    NEVER_BEGAN = "never began"
    #: It never began, and the engine has forgotten or dropped it: it may be submitted again.
    FORGOTTEN = "forgotten"


class Watched(NamedTuple):
    """What is remembered of a launch between two looks."""

    finding: LaunchFinding = LaunchFinding.WAITING
    #: When the engine first said that it is gone, and when it said so last, in monotonic seconds.
    gone_since: float | None = None
    gone_until: float = 0.0


def looked(
    before: Watched, seen: Sighting, at: float, *, has_begun: bool, silent_s: float, apart_s: float, silence_s: float
) -> Watched:
    """Return what is concluded after another look.

    Args:
        at: When the engine gave this answer; the same answer looked at again has the same time.
        has_begun: The node has claimed it.
        silent_s: For how long the node has given no sign of life.
        apart_s: How far apart two answers have to lie that prove that it is gone.
        silence_s: How long a node has to be silent that is taken for gone.

    >>> gone = Sighting(EngineState.ABSENT)
    >>> first = looked(Watched(), gone, 10, has_begun=True, silent_s=99, apart_s=5, silence_s=60)
    >>> first.finding, looked(first, gone, 16, has_begun=True, silent_s=99, apart_s=5, silence_s=60).finding
    (<LaunchFinding.DOUBTED: 'doubted'>, <LaunchFinding.LOST: 'lost'>)
    """
    if before.finding in (LaunchFinding.LOST, LaunchFinding.NEVER_BEGAN, LaunchFinding.FORGOTTEN):
        return before
    match seen.state:
        case EngineState.UNKNOWN:
            return before
        case EngineState.QUEUED if not has_begun:
            return Watched(LaunchFinding.WAITING)
        case EngineState.QUEUED | EngineState.RUNNING:
            return Watched(LaunchFinding.RUNNING if has_begun else LaunchFinding.WAITING)
    since = at if before.gone_since is None else before.gone_since
    doubted = Watched(LaunchFinding.DOUBTED, since, max(at, before.gone_until))
    if doubted.gone_until - since < apart_s:
        return doubted
    if has_begun:
        return doubted._replace(finding=LaunchFinding.LOST) if silent_s >= silence_s else doubted
    is_forgotten = seen.state in (EngineState.ABSENT, EngineState.DROPPED)
    return doubted._replace(finding=LaunchFinding.FORGOTTEN if is_forgotten else LaunchFinding.NEVER_BEGAN)
