"""A time limit counts the seconds in which its worker could work, and no others."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentctl.shim.timelimit import TimeLimit

PHASES = st.lists(st.tuples(st.integers(0, 50), st.booleans()), max_size=20)


@given(st.integers(1, 300), PHASES)
def test_only_the_time_between_the_stands_is_counted(seconds: int, phases: list[tuple[int, bool]]) -> None:
    limit, now, worked, still = TimeLimit(seconds, now=0), 0, 0, False
    for length, next_still in phases:
        now += length
        worked += 0 if still else length
        assert limit.is_over(now) == (not still and worked >= seconds)
        limit.stand_still(now, next_still)
        still = next_still
    due = limit.due()
    assert due == (None if still else now + seconds - worked)


@given(st.integers(1, 300), st.integers(0, 100), st.integers(2, 5))
def test_saying_the_same_again_changes_nothing(seconds: int, at: int, times: int) -> None:
    limit = TimeLimit(seconds, now=0)
    for _ in range(times):
        limit.stand_still(at, still=True)
    for again in range(times):
        limit.stand_still(at + 10 + again, still=False)
    assert limit.due() == at + 10 + seconds - at


def test_a_limit_that_passed_while_it_stood_passes_when_it_goes_on() -> None:
    limit = TimeLimit(5, now=0)
    limit.stand_still(4, still=True)
    assert limit.due() is None
    assert not limit.is_over(1_000)
    limit.stand_still(1_000, still=False)
    assert not limit.is_over(1_000.5)
    assert limit.is_over(1_001)
