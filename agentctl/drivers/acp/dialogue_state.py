"""The states of one dialogue, as one table: what can happen in each, and which state follows.

    what happens | GREETING | OPENING  | LOADING  | SETTING  | IDLE     | STRAYING | TURNING  | RETRYING
    -------------|----------|----------|----------|----------|----------|----------|----------|---------------
    GREETED      | OPENING  |          |          |          |          |          |          |
    RESUMED      |          | LOADING  |          |          |          |          |          |
    OPENED       |          | SETTING  | SETTING  |          |          |          |          |
    WAS_SET      |          |          |          | IDLE     |          |          |          |
    PROMPTED     |          |          |          |          | TURNING  | TURNING  |          |
    STEERED      |          |          |          |          |          |          | MESSAGE  | MESSAGE
    LIMIT_PASSED |          |          |          |          |          |          | LIMIT    | TURNING, LIMIT
    RETRIED      |          |          |          |          |          |          | RETRYING |
    WORKED       |          |          |          |          | STRAYING |          |          | TURNING
    TURN_ENDED   |          |          |          |          |          |          | IDLE     | IDLE
    INTERRUPTED  | hangs up | hangs up | hangs up | hangs up | hangs up | hangs up | cancels  | cancels

An empty cell changes nothing. An interruption is remembered in every phase; its cells say what is done at once.
MESSAGE and LIMIT are why agentctl has cancelled the turn. LIMIT stays, whatever follows; MESSAGE ends with its turn.
After LIMIT, RETRIED changes nothing. After an interruption, PROMPTED and LIMIT_PASSED change nothing, nor does WORKED
while it is idle: the first cause wins.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from agentctl.lean import NamedTuple


class DialoguePhase(IntEnum):
    """How far a dialogue has come; from `IDLE` on, the phases follow each other more than once."""

    #: The program was greeted, and has not answered.
    GREETING = 0
    #: It was asked for a session.
    OPENING = 1
    #: For one that is continued: what it says until it has opened that is the history, even where none was asked for.
    LOADING = 2
    #: The session is there: mode, model and effort are set.
    SETTING = 3
    IDLE = 4
    #: It works without a prompt, and was told to stop that.
    STRAYING = 5
    TURNING = 6
    #: In a turn, the program has told of a failed request that it tries once more.
    RETRYING = 7

    @property
    def is_open(self) -> bool:
        """Whether prompts are taken."""
        return self >= DialoguePhase.IDLE

    @property
    def is_turn(self) -> bool:
        """Whether a prompt was sent whose turn has not ended."""
        return self >= DialoguePhase.TURNING


class DialogueHappening(IntEnum):
    """What can happen to a dialogue."""

    #: The program has answered the greeting.
    GREETED = 0
    #: It was asked for the session that is continued.
    RESUMED = 1
    #: It has opened the session.
    OPENED = 2
    #: Mode, model and effort are as ordered.
    WAS_SET = 3
    PROMPTED = 4
    #: A message interrupts the turn.
    STEERED = 5
    #: The turn had more rounds than it may.
    LIMIT_PASSED = 6
    RETRIED = 7
    #: The program has told of work of the agent.
    WORKED = 8
    TURN_ENDED = 9
    #: The worker is cancelled.
    INTERRUPTED = 10


class TurnCancel(IntEnum):
    """Why agentctl has cancelled a turn whose worker was not cancelled."""

    NONE = 0
    #: A message interrupts it.
    MESSAGE = 1
    #: It had more rounds than it may.
    LIMIT = 2


class DialogueState(NamedTuple):
    """The state of a dialogue."""

    phase: DialoguePhase = DialoguePhase.GREETING
    #: `MESSAGE` only in a turn, `LIMIT` from some turn on and never while it is `RETRYING`.
    cancel: TurnCancel = TurnCancel.NONE
    #: The worker was cancelled: nothing begins any more.
    is_interrupted: bool = False

    @property
    def is_cancelled(self) -> bool:
        """Whether agentctl has cancelled the turn that is under way."""
        return self.is_interrupted or self.cancel is not TurnCancel.NONE

    @property
    def has_passed_limit(self) -> bool:
        """Whether the agent has had more rounds than it may."""
        return self.cancel is TurnCancel.LIMIT

    @property
    def may_retry(self) -> bool:
        """Whether it matters that the program tries a request once more."""
        return self.phase.is_turn and not self.has_passed_limit


def dialogue_after(state: DialogueState, happening: DialogueHappening) -> DialogueState:
    """Return the state that follows when something happens.

    >>> state = DialogueState(DialoguePhase.RETRYING, TurnCancel.MESSAGE)
    >>> dialogue_after(state, DialogueHappening.LIMIT_PASSED)._asdict()
    {'phase': <DialoguePhase.TURNING: 6>, 'cancel': <TurnCancel.LIMIT: 2>, 'is_interrupted': False}
    >>> dialogue_after(state, DialogueHappening.PROMPTED) == state
    True
    """
    if happening is DialogueHappening.INTERRUPTED:
        return state._replace(is_interrupted=True)
    step = _TABLE[state.phase].get(happening)
    return state if step is None else step(state)


def _to(phase: DialoguePhase) -> _Step:
    return lambda state: state._replace(phase=phase)


def _begin(phase: DialoguePhase) -> _Step:
    return lambda state: state if state.is_interrupted else state._replace(phase=phase)


def _steer(state: DialogueState) -> DialogueState:
    return state._replace(cancel=max(state.cancel, TurnCancel.MESSAGE))


def _limit(state: DialogueState) -> DialogueState:
    return state if state.is_interrupted else state._replace(phase=DialoguePhase.TURNING, cancel=TurnCancel.LIMIT)


def _retry(state: DialogueState) -> DialogueState:
    return state._replace(phase=DialoguePhase.RETRYING) if state.may_retry else state


def _end(state: DialogueState) -> DialogueState:
    return state._replace(
        phase=DialoguePhase.IDLE, cancel=TurnCancel.LIMIT if state.has_passed_limit else TurnCancel.NONE
    )


_Step = Callable[[DialogueState], DialogueState]
_IN_TURN = {
    DialogueHappening.STEERED: _steer, DialogueHappening.LIMIT_PASSED: _limit, DialogueHappening.TURN_ENDED: _end,
}  # fmt: skip
_TABLE: dict[DialoguePhase, dict[DialogueHappening, _Step]] = {
    DialoguePhase.GREETING: {DialogueHappening.GREETED: _to(DialoguePhase.OPENING)},
    DialoguePhase.OPENING: {
        DialogueHappening.RESUMED: _to(DialoguePhase.LOADING), DialogueHappening.OPENED: _to(DialoguePhase.SETTING),
    },
    DialoguePhase.LOADING: {DialogueHappening.OPENED: _to(DialoguePhase.SETTING)},
    DialoguePhase.SETTING: {DialogueHappening.WAS_SET: _to(DialoguePhase.IDLE)},
    DialoguePhase.IDLE: {
        DialogueHappening.PROMPTED: _begin(DialoguePhase.TURNING),
        DialogueHappening.WORKED: _begin(DialoguePhase.STRAYING),
    },
    DialoguePhase.STRAYING: {DialogueHappening.PROMPTED: _begin(DialoguePhase.TURNING)},
    DialoguePhase.TURNING: {**_IN_TURN, DialogueHappening.RETRIED: _retry},
    DialoguePhase.RETRYING: {**_IN_TURN, DialogueHappening.WORKED: _to(DialoguePhase.TURNING)},
}  # fmt: skip
