"""At stake: whatever happens to a launch, in any order, its state is valid, never goes back, and is judged truly."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.domain.state_tables import launch_state
from agentctl.domain.state_tables.launch_state import (
    LaunchNews,
    LaunchPhase,
    LaunchState,
    after_engine_answer,
    launch_after,
    taken_up,
)
from agentctl.domain.worker.sightings import MOST_SUBMISSIONS, EngineState, LaunchFinding, Sighting, Watched

NEW, SUBMITTED, BEGUN, ENDED = LaunchPhase
#: The engine has said once that the launch is gone.
DOUBTED = Watched(LaunchFinding.DOUBTED, 1.0, 1.0)

#: What happens, or what the engine says, and how many seconds after the previous event; how another one has left it.
STORY = st.tuples(
    st.builds(taken_up, st.integers(0, MOST_SUBMISSIONS), is_held=st.booleans()),
    st.lists(st.tuples(st.sampled_from([*LaunchNews, *EngineState]), st.integers(0, 12)), max_size=30),
)
Story = tuple[LaunchState, list[tuple[LaunchNews | EngineState, int]]]


def states_of(story: Story) -> list[LaunchState]:
    """Return the states of a launch, one after the other; its node is silent from the beginning."""
    first, happenings = story
    states, now = [first], 0.0
    for one, pause in happenings:
        now += pause
        if isinstance(one, EngineState):
            states.append(after_engine_answer(states[-1], Sighting(one), now, silent_s=now, apart_s=5, silence_s=10))
        else:
            states.append(launch_after(states[-1], one, now))
    return states


@given(STORY)
def test_no_state_comes_about_that_cannot_be(story: Story) -> None:
    for state in states_of(story):
        assert state.submissions or state.phase is not SUBMITTED, state
        assert not (state.submissions and state.phase is NEW), state
        assert not (state.is_held and state.has_begun), state
        assert not (state.unseen_since and state.phase is not ENDED), state


@given(STORY)
def test_a_launch_only_goes_on_and_its_first_end_counts(story: Story) -> None:
    for before, state in itertools.pairwise(states_of(story)):
        assert state.phase >= before.phase
        assert before.submissions <= state.submissions <= before.submissions + 1
        assert before.is_held or not state.is_held
        assert before.phase is not ENDED or state.unseen_since == before.unseen_since


@given(STORY)
def test_one_that_has_begun_is_never_given_to_the_engine_again_nor_called_unbegun(story: Story) -> None:
    for state in states_of(story):
        finding = state.watched.finding
        assert not (state.has_begun and finding in (LaunchFinding.FORGOTTEN, LaunchFinding.NEVER_BEGAN)), state
        assert state.has_begun or finding is not LaunchFinding.LOST, state


@given(STORY)
def test_nobody_rests_while_a_launch_is_held_or_doubted_or_its_end_is_known(story: Story) -> None:
    for state in states_of(story):
        restless = state.is_held or state.phase in (NEW, ENDED) or state.watched.gone_since is not None
        assert not (state.is_calm and restless), state


@pytest.mark.parametrize("phase", LaunchPhase)
@pytest.mark.parametrize("news", LaunchNews)
def test_the_picture_of_the_table_is_the_table(phase: LaunchPhase, news: LaunchNews) -> None:
    rows = re.findall(r"^ {4}(\w+) +\|(.*)$", launch_state.__doc__ or "", re.MULTILINE)
    cells = {name: [cell.strip() for cell in cells.split("|")] for name, cells in rows}
    shown = cells[news.name][phase]
    state = LaunchState(
        phase, 0 if phase is NEW else 1, is_held=phase < BEGUN, is_interrupted=news is LaunchNews.UNREACHED,
        watched=DOUBTED, unseen_since=3.0 if phase is ENDED else 0.0,
    )  # fmt: skip
    anew = state._replace(watched=Watched())
    expected = {
        "": state,
        "may begin": state._replace(is_held=False),
        "waits": state._replace(submission_due=12.0),
        "SUBMITTED": anew._replace(phase=SUBMITTED, submissions=1),
        "once more": anew._replace(submissions=2),
        "judged anew": anew,
        "BEGUN": anew._replace(phase=BEGUN, is_held=False),
        "ENDED": state._replace(phase=ENDED, unseen_since=7.0),
        "interrupted": state._replace(is_interrupted=True),
        "to do again": state._replace(is_interrupted=False),
    }
    assert launch_after(state, news, 7.0) == expected[shown]


def test_the_engine_may_say_only_after_the_beginning_that_it_has_taken_it() -> None:
    state = launch_after(launch_after(LaunchState(), LaunchNews.CLAIMED), LaunchNews.SUBMITTED)
    assert (state.phase, state.submissions) == (BEGUN, 1)


def test_what_was_said_before_the_beginning_proves_nothing_about_what_has_begun() -> None:
    state = launch_after(taken_up(1, is_held=False)._replace(watched=DOUBTED), LaunchNews.CLAIMED)
    found = after_engine_answer(state, Sighting(EngineState.ABSENT), 99.0, silent_s=99, apart_s=5, silence_s=10)
    assert found.watched == Watched(LaunchFinding.DOUBTED, 99.0, 99.0)


def test_it_is_given_to_the_engine_a_few_times_and_no_more() -> None:
    state, submissions = taken_up(1, is_held=False), 1
    while state.may_be_submitted_again:
        state, submissions = (
            launch_after(launch_after(state, LaunchNews.DROPPED), LaunchNews.SUBMITTED),
            submissions + 1,
        )
    assert submissions == MOST_SUBMISSIONS
