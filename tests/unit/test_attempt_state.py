"""At stake: whatever happens to an attempt, in any order, its state is valid and never goes back."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.domain.state_tables import attempt_state
from agentctl.domain.state_tables.attempt_state import AttemptPhase, AttemptState, Cause, Happening, advanced, after
from agentctl.domain.states import Reason, Status
from agentctl.domain.worker.escalation import Escalation, Stage, begin

CANCEL = Cause(Status.CANCELLED, grace_s=5)
LIMIT = Cause(Reason.TIMED_OUT, grace_s=2, message="its time limit passed")
RUNS, HELD, STOPS, SWEEPS = AttemptPhase

#: What happens (None: only time passes), and how many seconds after the previous event.
STORY = st.lists(st.tuples(st.sampled_from([*Happening, None]), st.integers(0, 12)), max_size=30)


def cause_of(happening: Happening) -> Cause | None:
    return {Happening.CANCELLED: CANCEL, Happening.LIMIT: LIMIT}.get(happening)


def states_of(story: list[tuple[Happening | None, int]]) -> list[AttemptState]:
    """Return the states of an attempt, one after the other."""
    states, now = [AttemptState()], 0.0
    for happening, pause in story:
        now += pause
        state = states[-1]
        if happening is None:
            states.append(advanced(state, now, sweep_grace_s=3))
        else:
            states.append(after(state, happening, now, cause_of(happening)))
    return states


@given(STORY)
def test_no_state_comes_about_that_cannot_be(story: list[tuple[Happening | None, int]]) -> None:
    for state in states_of(story):
        unstopped = state.phase in (RUNS, HELD)
        assert not (unstopped and (state.cause or state.escalation)), state
        assert not (state.phase is STOPS and (state.cause is None or state.escalation is None)), state
        assert unstopped or not state.is_paused, state


@given(STORY)
def test_an_attempt_only_goes_on_and_its_first_cause_stays(story: list[tuple[Happening | None, int]]) -> None:
    states = states_of(story)
    for before, state in itertools.pairwise(states):
        assert state.phase >= before.phase
        assert state.stage >= before.stage
        assert before.cause in (None, state.cause)


@given(STORY)
def test_survivors_are_named_once_however_often_a_cancel_is_met(story: list[tuple[Happening | None, int]]) -> None:
    stages = [state.stage for state in states_of(story)]
    entered = [stage for before, stage in itertools.pairwise(stages) if stage is not before]
    assert entered.count(Stage.SURVIVORS) <= 1


@given(STORY)
def test_a_sweep_begins_at_sigterm_unless_more_was_sent(story: list[tuple[Happening | None, int]]) -> None:
    swept = advanced(after(states_of(story)[-1], Happening.EXITED), 1e9, sweep_grace_s=3)
    assert swept.phase is SWEEPS
    assert swept.stage >= Stage.TERMINATE


@pytest.mark.parametrize("phase", AttemptPhase)
@pytest.mark.parametrize("happening", Happening)
def test_the_picture_of_the_table_is_the_table(phase: AttemptPhase, happening: Happening) -> None:
    rows = re.findall(r"^ {4}(\w+) +\|(.*)$", attempt_state.__doc__ or "", re.MULTILINE)
    cells = {name: [cell.strip() for cell in cells.split("|")] for name, cells in rows}
    shown = cells[happening.name][phase]
    step = begin(0, 9)
    state = {
        RUNS: AttemptState(is_paused=happening is Happening.UNPAUSED),
        HELD: AttemptState(HELD, is_paused=happening is Happening.UNPAUSED),
        STOPS: AttemptState(STOPS, CANCEL, step),
        SWEEPS: AttemptState(SWEEPS, None, step),
    }[phase]
    found = after(state, happening, 0, cause_of(happening))
    match shown:
        case "":
            assert found == state
        case "paused" | "goes on":
            assert found == state._replace(is_paused=shown == "paused") != state
        case "hurries":
            assert (found.phase, found.escalation and found.escalation.grace_s) == (phase, cause_of(happening).grace_s)  # type: ignore[union-attr]
        case "is the cause, or hurries":
            assert found == state._replace(cause=LIMIT)
            blamed = after(state._replace(cause=CANCEL), happening, 0, LIMIT)
            assert (blamed.cause, blamed.escalation and blamed.escalation.grace_s) == (CANCEL, LIMIT.grace_s)
        case _:
            assert found.phase is AttemptPhase[shown]


def test_a_removed_task_ends_a_worker_whose_cancel_was_held() -> None:
    state = after(AttemptState(HELD), Happening.CANCELLED, 1, CANCEL._replace(message="its task was removed"))
    assert (state.phase, state.escalation) == (STOPS, Escalation(Stage.INTERRUPT, 6, 5))
