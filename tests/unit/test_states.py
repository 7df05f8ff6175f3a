"""At stake: which status may follow which, and what follows from it: a task's state, a worker's state in the roster."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.domain.states import MOVES, ROSTER_STATE, TERMINAL, Status, task_state, task_status

STATUSES = st.lists(st.sampled_from(Status), max_size=8)
TASK_STATES = {"created", "working", "input-required", "completed", "failed", "canceled"}


def test_the_table_has_a_row_for_every_status() -> None:
    assert set(MOVES) == set(Status) == set(ROSTER_STATE)


@pytest.mark.parametrize("status", Status)
def test_exactly_what_is_terminal_has_no_way_out(status: Status) -> None:
    assert (status in TERMINAL) == (not MOVES[status])


@pytest.mark.parametrize("status", sorted(set(Status) - TERMINAL))
def test_what_lives_can_end_in_every_way(status: Status) -> None:
    assert MOVES[status] >= TERMINAL


def test_only_a_running_worker_blocks_or_is_given_back_and_a_blocked_one_can_do_both() -> None:
    assert {status for status in Status if Status.BLOCKED in MOVES[status]} == {Status.RUNNING, Status.BLOCKED}
    assert {status for status in Status if Status.QUEUED in MOVES[status]} == {Status.RUNNING, Status.BLOCKED}


def test_people_read_one_word_for_one_state() -> None:
    words = {task_status(state) for state in TASK_STATES}
    assert words - set(Status) == {"created"}
    assert len(words) == len(TASK_STATES)


@given(STATUSES, st.randoms(use_true_random=False))
def test_a_tasks_state_does_not_depend_on_order_or_number(statuses: list[Status], random: object) -> None:
    state = task_state(statuses)
    assert state in TASK_STATES
    assert state == task_state(reversed(statuses)) == task_state([*statuses, *statuses]) == task_state(set(statuses))


@given(STATUSES)
def test_a_task_is_over_exactly_when_all_its_workers_are(statuses: list[Status]) -> None:
    over = bool(statuses) and all(status in TERMINAL for status in statuses)
    assert (task_state(statuses) in {"completed", "failed", "canceled"}) == over


@pytest.mark.parametrize(
    ("statuses", "state"),
    [
        ([], "created"),
        ([Status.QUEUED], "working"),
        ([Status.RUNNING, Status.FAILED], "working"),
        ([Status.RUNNING, Status.BLOCKED], "input-required"),
        ([Status.COMPLETED, Status.COMPLETED], "completed"),
        ([Status.COMPLETED, Status.CANCELLED], "canceled"),
        ([Status.CANCELLED, Status.FAILED], "failed"),
    ],
    ids=lambda value: value if isinstance(value, str) else "+".join(value) or "none",
)
def test_what_weighs_most_names_the_task(statuses: list[Status], state: str) -> None:
    assert task_state(statuses) == state
