"""At stake: a worker's clock counts exactly the seconds in which it was at work, and its record is read correctly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.adapters import processes
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.worker.worktime import Span, Worked, covered_s, time_at_work, worked_from
from agentctl.shim import workclock
from agentctl.shim.workclock import WorkClock

PHASES = st.lists(st.tuples(st.integers(0, 50), st.booleans()), max_size=20)
SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=8)
NUMBERS = st.floats() | st.integers() | st.none() | st.booleans() | st.text(max_size=2)
JSON = st.recursive(NUMBERS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner))


def clock_at(now: float) -> WorkClock:
    """Return the clock of a worker without a folder, so that it cannot write anything."""
    clock = WorkClock(WorkerDir("/nowhere/tasks/t/agents/a"))
    clock.begin(now)
    return clock


@given(st.integers(1, 300), PHASES)
def test_only_the_time_at_work_is_counted(seconds: int, phases: list[tuple[int, bool]]) -> None:
    clock, now, worked = clock_at(1000), 1000, 0
    for length, at_work in phases:
        now += length
        worked += length if at_work else 0
        clock.note(now, at_work=at_work)
        assert clock.worked_s == worked
        assert clock.due(seconds) == now + seconds - worked
    clock.end()
    assert covered_s(Span(*span) for span in clock.spans) == worked


@given(PHASES, PHASES)
def test_what_it_tells_is_what_it_counted_at_every_moment(first: Any, second: Any) -> None:
    now, worked = 1000, 0
    clock = clock_at(now)
    for phases in (first, second):
        for length, at_work in phases:
            now += length
            worked += length if at_work else 0
            clock.note(now, at_work=at_work)
            told = json.loads(json.dumps(clock.to_json()))
            assert time_at_work([worked_from(told, processes.boot_id(), now, is_at_work=True)]) == worked
        clock.end()
        now += 5  # The pause before the next attempt.
        clock.begin(now)


def test_what_passed_without_a_word_counts_as_it_turns_out() -> None:
    clock = clock_at(10)
    clock.note(14, at_work=True)
    clock.note(15, at_work=False)
    assert (clock.worked_s, clock.since, clock.spans) == (4, None, [(10, 14)])
    clock.note(16, at_work=True)
    assert (clock.worked_s, clock.since) == (5, 15)


def test_a_worker_that_stops_again_and_again_has_no_endless_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workclock, "_MOST_SPANS", 20)
    clock = clock_at(0)
    for number in range(50):
        clock.note(2 * number + 1, at_work=True)
        clock.note(2 * number + (1.5 if number == 40 else 2), at_work=False)
    clock.end()
    assert len(clock.spans) == 20
    assert clock.worked_s == pytest.approx(50, abs=0.5), "the limit of the worker itself goes by the second"
    assert covered_s(Span(*span) for span in clock.spans) >= clock.worked_s


def test_it_is_on_disk_only_once_it_has_stood(tmp_path: Path) -> None:
    worker = WorkerDir(str(tmp_path))
    clock = WorkClock(worker)
    clock.begin(1)
    clock.note(2, at_work=True)
    assert not worker.worked.exists()
    clock.note(3, at_work=False)
    boot = processes.boot_id()
    assert json.loads(worker.worked.read_bytes()) == {"boot": boot, "spans": [[1, 2]]}
    clock.note(4, at_work=True)
    assert json.loads(worker.worked.read_bytes()) == {"boot": boot, "spans": [[1, 2]], "since": 3}


# -- many workers ------------------------------------------------------------------------------------------------------


@given(SPANS)
def test_the_time_at_work_is_that_of_each_moment_in_which_anybody_worked(spans: list[tuple[int, int]]) -> None:
    moments = {moment for begin, end in spans for moment in range(begin, end)}
    assert covered_s(Span(*span) for span in spans) == len(moments)


@given(SPANS, SPANS)
def test_boots_add_up_and_workers_of_one_boot_do_not(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    first, second = (tuple(Span(*span) for span in spans) for spans in (one, other))
    apart = time_at_work([Worked("a", first), Worked("b", second)])
    assert apart == covered_s(first) + covered_s(second)
    assert time_at_work([Worked("a", first), Worked("a", second)]) == covered_s((*first, *second)) <= apart


@given(
    st.one_of(JSON, st.fixed_dictionaries({"boot": st.sampled_from("ab"), "spans": JSON, "since": JSON})), st.booleans()
)
def test_whatever_a_file_tells_no_more_counts_than_can_be(value: Any, is_at_work: bool) -> None:
    worked = worked_from(value, "a", 1000, is_at_work=is_at_work)
    assert 0 <= time_at_work([worked]) <= (1000 if worked.boot == "a" else 1e9)


def test_what_cannot_be_counts_nothing() -> None:
    nan, infinite = float("nan"), float("inf")
    for row in ([5, 1001], [-1, 5], [nan, 5], [1, nan], [1, infinite], [5, 1], [1], [1, 2, 3], ["1", 2], [True, 2]):
        assert worked_from({"boot": "a", "spans": [[1, 2], row]}, "a", 1000) == Worked(), row
    assert worked_from({"boot": "a", "spans": [[0, 1]] * 10_001}, "a", 1000) == Worked()
    assert worked_from({"boot": "a", "spans": [], "since": 5}, "a", 1000) == Worked("a"), "nobody measures it any more"
