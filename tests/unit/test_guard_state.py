"""At stake: whatever happens to a worker under guard, in any order, it is never started twice nor forgotten."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.domain.state_tables import guard_state
from agentctl.domain.state_tables.guard_state import GuardHappening, GuardState, following

QUEUED, STARTED, RETRYING, WAITING, PARKED, *_ = GuardState
#: In these the shim is at work for the worker.
LIVE = (QUEUED, STARTED, RETRYING)

STORY = st.lists(st.sampled_from(GuardHappening), max_size=12)


def states_of(story: list[GuardHappening]) -> list[GuardState]:
    """Return the states of a worker under guard, one after the other."""
    return list(itertools.accumulate(story, following, initial=QUEUED))


def changes_in(story: list[GuardHappening]) -> list[tuple[GuardState, GuardState]]:
    return [(before, state) for before, state in itertools.pairwise(states_of(story)) if state is not before]


@given(STORY)
def test_who_has_left_the_queue_is_not_taken_for_waiting_there(story: list[GuardHappening]) -> None:
    for before, state in changes_in(story):
        assert state is not QUEUED
        assert before is QUEUED or state is not WAITING


@given(STORY)
def test_only_what_was_started_is_retried_or_parked(story: list[GuardHappening]) -> None:
    for before, state in changes_in(story):
        assert before is STARTED or state is not RETRYING
        assert before in (STARTED, RETRYING) or state is not PARKED


@given(STORY)
def test_once_a_shim_is_done_with_a_worker_nothing_changes(story: list[GuardHappening]) -> None:
    assert all(before in LIVE for before, _ in changes_in(story))


@pytest.mark.parametrize("state", GuardState)
@pytest.mark.parametrize("happening", GuardHappening)
def test_the_picture_of_the_table_is_the_table(state: GuardState, happening: GuardHappening) -> None:
    rows = re.findall(r"^ {4}(\w[\w ]+?) +\|(.*)$", guard_state.__doc__ or "", re.MULTILINE)
    (_, head), *pictured = [(name, [cell.strip() for cell in cells.split("|")]) for name, cells in rows]
    assert [name for name, _ in pictured] == [one.name for one in GuardHappening]
    shown = dict(zip(head, dict(pictured)[happening.name], strict=True)).get(state.name)
    assert following(state, happening) is (GuardState[shown] if shown else state)
