"""At stake: whatever happens to a dialogue, in any order, its state is one that can be, and what counts is not lost."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.drivers.acp import dialogue_state
from agentctl.drivers.acp.dialogue_state import (
    DialogueHappening,
    DialoguePhase,
    DialogueState,
    TurnCancel,
    dialogue_after,
)

OPENING = [DialogueHappening.GREETED, DialogueHappening.OPENED, DialogueHappening.WAS_SET]
LATER = st.lists(st.sampled_from(DialogueHappening), max_size=30)
#: Most stories begin with the opening of a session: few others come to a turn.
STORY = st.tuples(st.sampled_from([[], OPENING, [*OPENING, DialogueHappening.PROMPTED]]), LATER).map(
    lambda parts: [*parts[0], *parts[1]]
)
CANCELS = {cancel.name for cancel in TurnCancel}


def states_of(story: list[DialogueHappening]) -> list[DialogueState]:
    """Return the states of a dialogue, one after the other."""
    return list(itertools.accumulate(story, dialogue_after, initial=DialogueState()))


@given(STORY)
def test_no_state_comes_about_that_cannot_be(story: list[DialogueHappening]) -> None:
    for state in states_of(story):
        assert state.phase.is_open or state.cancel is TurnCancel.NONE, state
        assert state.phase.is_turn or state.cancel is not TurnCancel.MESSAGE, state
        assert not (state.phase is DialoguePhase.RETRYING and state.has_passed_limit), state


@given(STORY)
def test_a_limit_and_an_interruption_stay_and_an_opened_session_stays_open(story: list[DialogueHappening]) -> None:
    for before, state in itertools.pairwise(states_of(story)):
        assert state.has_passed_limit >= before.has_passed_limit
        assert state.is_interrupted >= before.is_interrupted
        assert state.phase >= min(before.phase, DialoguePhase.IDLE)


@given(STORY)
def test_nothing_begins_once_it_was_interrupted(story: list[DialogueHappening]) -> None:
    for before, state in itertools.pairwise(states_of(story)):
        if before.is_interrupted and not before.phase.is_turn:
            assert not state.phase.is_turn
            assert (state.phase is DialoguePhase.STRAYING) <= (before.phase is DialoguePhase.STRAYING)
        if before.is_interrupted:
            assert state.has_passed_limit == before.has_passed_limit, "the first cause wins"


@given(STORY)
def test_a_message_is_forgotten_with_its_turn(story: list[DialogueHappening]) -> None:
    ended = dialogue_after(states_of([*story, DialogueHappening.STEERED])[-1], DialogueHappening.TURN_ENDED)
    assert ended.cancel is not TurnCancel.MESSAGE
    assert not ended.phase.is_turn


@pytest.mark.parametrize("phase", DialoguePhase)
@pytest.mark.parametrize("happening", DialogueHappening)
def test_the_picture_of_the_table_is_the_table(phase: DialoguePhase, happening: DialogueHappening) -> None:
    rows = re.findall(r"^ {4}(\w+) +\|(.*)$", dialogue_state.__doc__ or "", re.MULTILINE)
    cells = {name: [cell.strip() for cell in cells.split("|")] for name, cells in rows}
    shown = cells[happening.name][phase]
    expected = state = DialogueState(phase)
    for word in filter(None, shown.split(", ")):
        if word in {"hangs up", "cancels"}:
            assert phase.is_turn == (word == "cancels")
            expected = expected._replace(is_interrupted=True)
        elif word in CANCELS:
            expected = expected._replace(cancel=TurnCancel[word])
        else:
            expected = expected._replace(phase=DialoguePhase[word])
    assert dialogue_after(state, happening) == expected
    assert (expected != state) == bool(shown)
