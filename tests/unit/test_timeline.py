"""At stake: a timeline says what happened when, for any log; and its critical path is a chain without holes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.adapters.clock import iso_of
from agentctl.domain import events as ev
from agentctl.domain.events import BadLine, Event
from agentctl.domain.states import Status
from agentctl.domain.timeline.critical_path import Because, critical_path
from agentctl.domain.timeline.timeline import Bar, History, Piece, Shade, _steady, in_order, runs
from agentctl.domain.timeline.timescale import scale_of
from agentctl.domain.worker.projection import TaskView

KINDS = (
    ev.QUEUED, ev.STARTED, ev.BLOCKED, ev.RESUMED, ev.RETRYING, ev.RETRIED, ev.PARKED, ev.PAUSED, ev.STALLED,
    ev.AWAITING_CHILDREN, ev.CANCEL_FAILED, ev.COMPLETED, ev.FAILED, ev.CANCELLED, ev.ASKED, "agent.unknown",
)  # fmt: skip
NAMES = ("a", "b", "c", "d", "../e")
#: What no field should be.
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, -1, 10**400, math.nan, "", "x", "\ud83d", [], [5], {}, ["a", "b", "../e", 5]]
)
PAYLOADS: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    st.sampled_from(["after", "parent", "parentTaskId", "parentInstance", "attempt", "shimPid", "pid", "command"]),
    ODD | st.sampled_from(NAMES) | st.integers(1, 3) | st.lists(st.sampled_from(NAMES), max_size=3),
    max_size=4,
)
STAMPS = st.integers(0, 50).map(lambda n: iso_of(1000 + n)) | st.sampled_from(
    ["", "yesterday", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59Z", "2026-11-25", 5, None]
)
EVENTS = st.builds(
    lambda ts, kind, name, payload: ev.make_event(ts, kind, "t", "user", payload, name),
    STAMPS, st.sampled_from(KINDS), st.sampled_from(NAMES), PAYLOADS,
)  # fmt: skip
LOGS = st.lists(EVENTS | st.just(BadLine(1, "torn")), max_size=40)
INSTANTS = st.integers(0, 30).map(float)


def rows_of(log: Sequence[Event | BadLine]) -> list[tuple[int, Event] | BadLine]:
    return [one if isinstance(one, BadLine) else (seq, one) for seq, one in enumerate(log, 1)]


def bars_of(log: Sequence[Event | BadLine], now: float = 1100.0) -> list[Bar]:
    history = History("t")
    history.apply(rows_of(log))
    return history.bars(max(now, history.last(now)))


def happened(at: float, kind: str, name: str = "a", **payload: Any) -> Event:
    return ev.make_event(iso_of(1000 + at), kind, "t", "user", payload, name)


# -- bars --------------------------------------------------------------------------------------------------------------


def test_a_life_is_a_bar_of_pieces() -> None:
    (bar,) = bars_of(
        [
            happened(0, ev.QUEUED, agent="fix", driver="claude", command="Fix it"),
            happened(2, ev.STARTED, pid=5, shimPid=6),
            happened(3, ev.BLOCKED, id="q1"),
            happened(5, ev.PAUSED),
            happened(7, ev.RESUMED, id="q1"),
            happened(8, ev.RETRYING, attempt=2),
            happened(10, ev.RETRIED, attempt=2),
            happened(11, ev.RETRYING, attempt=3),
            happened(11, ev.PARKED, attempt=3),
            happened(20, ev.RETRIED, attempt=3),
            happened(22, ev.FAILED, reason="exit_code"),
            happened(30, ev.COMPLETED),
        ]
    )
    assert [(one.shade, one.attempt, one.began - 1000, one.until - 1000) for one in bar.pieces] == [
        (Shade.QUEUED, 1, 0, 2),
        (Shade.RUNNING, 1, 2, 3),
        (Shade.BLOCKED, 1, 3, 7),
        (Shade.RUNNING, 1, 7, 8),
        (Shade.RUNNING, 2, 10, 11),
        (Shade.PARKED, 3, 11, 20),
        (Shade.RUNNING, 3, 20, 22),
    ]
    assert (bar.agent, bar.driver, bar.command, bar.status, bar.reason) == (
        "fix", "claude", "Fix it", Status.FAILED, "exit_code",
    )  # fmt: skip
    assert (bar.began, bar.until, bar.is_open, bar.attempts, bar.started) == (1000, 1022, False, 3, 1002)


def test_an_open_bar_lasts_until_now() -> None:
    (bar,) = bars_of([happened(0, ev.QUEUED), happened(1, ev.STARTED)], now=1009.0)
    assert bar.is_open
    assert bar.pieces[-1] == Piece(Shade.RUNNING, 1001, 1009, 1)


@pytest.mark.parametrize("jump", [-3600, 3600, 10**9])
def test_a_clock_that_jumps_for_a_moment_moves_no_other_worker(jump: int) -> None:
    log = [happened(at, kind, name) for name in "ab" for at, kind in ((0, ev.QUEUED), (1, ev.STARTED))]
    log += [happened(5 + jump, ev.COMPLETED, "a"), happened(6, ev.COMPLETED, "b")]
    log.sort(key=lambda event: event["type"] != ev.QUEUED)
    a, b = bars_of(log)
    assert (b.began, b.until) == (1000, 1006)
    assert 1000 <= a.until <= 1006


@given(LOGS)
def test_a_timeline_agrees_with_the_projection_and_its_pieces_are_in_order(log: list[Event | BadLine]) -> None:
    view = TaskView()
    view.apply(rows_of(log))
    bars = bars_of(log)
    assert {bar.id[1] for bar in bars} == set(view.workers)
    for bar in bars:
        worker = view.workers[bar.id[1]]
        assert (bar.status, bar.is_open) == (worker.status, not worker.is_terminal)
        assert all(piece.began <= piece.until for piece in bar.pieces)
        assert all(one.until <= after.began for one, after in pairwise(bar.pieces))
        assert all(bar.began <= piece.began and piece.until <= bar.until for piece in bar.pieces)
        assert all(one in {other.id for other in bars} for one in bar.after)


@given(st.lists(st.floats(allow_nan=True, allow_infinity=False, width=32), max_size=60))
def test_stamps_never_go_back_and_right_ones_are_kept(stamps: list[float]) -> None:
    steady = list(_steady(stamps, 0.0))
    assert len(steady) == len(stamps)
    assert all(one <= after for one, after in pairwise(steady))
    right = sorted(stamp for stamp in stamps if not math.isnan(stamp))
    assert list(_steady(right, 0.0)) == right
    assert set(steady) <= {*right, 0.0}


@given(LOGS)
def test_an_outline_has_each_bar_once_and_after_its_parent(log: list[Event | BadLine]) -> None:
    bars = bars_of(log)
    outline = in_order(bars)
    assert {bar.id for bar in outline} == {bar.id for bar in bars}
    assert len(outline) == len(bars)
    seen: dict[object, Bar] = {}
    for bar in outline:
        if bar.depth:
            assert bar.parent is not None
            assert seen[bar.parent].depth == bar.depth - 1
        seen[bar.id] = bar


def test_a_chain_of_parents_as_long_as_no_honest_one_is_an_outline_too() -> None:
    log = [happened(n, ev.QUEUED, f"w{n}", parent=f"w{n - 1}") for n in range(10_000)]
    outline = in_order(bars_of(log, now=20_000.0))
    assert [bar.id[1] for bar in outline] == [f"w{n}" for n in range(10_000)]


@given(LOGS, st.integers(8, 200), st.integers(1, 8))
def test_what_is_drawn_of_a_bar_never_overlaps_and_never_vanishes(
    log: list[Event | BadLine], cells: int, least: int
) -> None:
    for bar in bars_of(log):
        drawn = runs(bar, 1000.0, 1050.0, cells, least)
        assert all(one.end <= after.first for one, after in pairwise(drawn))
        assert all(0 <= one.first < one.end <= cells for one in drawn)
        assert bool(drawn) == bool(bar.pieces)
        assert not drawn or drawn[-1].end - drawn[0].first >= least


def test_what_is_beyond_the_most_changes_is_left_out() -> None:
    log = [happened(n, kind, f"w{n}") for n in range(9) for kind in (ev.QUEUED, ev.STARTED)]
    history = History("t", most=10)
    history.apply(rows_of(log))
    assert (history.is_cut, history.changes, len(history.bars(1100.0))) == (True, 10, 5)
    history = History("t", most=len(log))
    history.apply(rows_of(log))
    assert (history.is_cut, len(history.bars(1100.0))) == (False, 9)


# -- the critical path -------------------------------------------------------------------------------------------------


def test_each_rule_of_the_critical_path() -> None:
    """`late` waits for `parent`, whose child ran in the slot of `first`; that one was started at once."""
    bars = bars_of(
        [
            happened(0, ev.QUEUED, "first"),
            happened(0.1, ev.STARTED, "first", shimPid=70),
            happened(0.2, ev.QUEUED, "other"),
            happened(0.3, ev.STARTED, "other", shimPid=71),
            happened(1, ev.QUEUED, "parent"),
            happened(1, ev.QUEUED, "late", after=["parent", "other"]),
            happened(2, ev.COMPLETED, "first"),
            happened(2.1, ev.STARTED, "parent", shimPid=70),
            happened(3, ev.QUEUED, "child", parent="parent"),
            happened(3.1, ev.STARTED, "child", shimPid=72),
            happened(5, ev.COMPLETED, "other"),
            happened(8, ev.COMPLETED, "child"),
            happened(9, ev.COMPLETED, "parent"),
            happened(9.2, ev.STARTED, "late", shimPid=70),
            happened(12, ev.COMPLETED, "late"),
        ]
    )
    path = [(one.bar[1], one.began - 1000, one.until - 1000, one.because) for one in critical_path(bars)]
    assert path == [
        ("first", 0, 2, Because.START),
        ("parent", 2, 3, Because.SLOT),
        ("child", 3, 8, Because.PARENT),
        ("parent", 8, 9, Because.CHILD),
        ("late", 9, 12, Because.DEPENDENCY),
    ]


@pytest.mark.parametrize(("wait", "because"), [(5.0, Because.SLOT), (0.1, Because.START)])
def test_a_long_wait_that_no_shim_explains_ended_by_the_last_end_in_it(wait: float, because: Because) -> None:
    log = [
        happened(0, ev.QUEUED, "a"), happened(0, ev.STARTED, "a", shimPid=1), happened(10 - wait, ev.QUEUED, "b"),
        happened(9.95, ev.PARKED, "a"), happened(10, ev.STARTED, "b", shimPid=2), happened(12, ev.CANCELLED, "a"),
        happened(20, ev.COMPLETED, "b"),
    ]  # fmt: skip
    path = critical_path(bars_of(log))
    assert path[-1].because is because
    assert (path[0].bar[1] == "a") == (because is Because.SLOT)


def test_a_worker_that_failed_because_of_another_has_that_one_on_its_path() -> None:
    log = [
        happened(0, ev.QUEUED, "a"), happened(0, ev.QUEUED, "b", after=["a"]), happened(1, ev.STARTED, "a"),
        happened(4, ev.FAILED, "a", reason="exit_code"), happened(5, ev.FAILED, "b", reason="dependency"),
    ]  # fmt: skip
    assert [(one.bar[1], one.because) for one in critical_path(bars_of(log))] == [
        ("a", Because.START),
        ("b", Because.DEPENDENCY),
    ]


def test_of_open_workers_the_path_ends_with_the_one_that_the_others_wait_for() -> None:
    log = [
        happened(0, ev.QUEUED, "a"), happened(0, ev.STARTED, "a"), happened(2, ev.QUEUED, "b", parent="a"),
        happened(2, ev.STARTED, "b"), happened(3, ev.QUEUED, "c", after=["a"]),
    ]  # fmt: skip
    path = critical_path(bars_of(log, now=1007.0))
    assert [(one.bar[1], one.began - 1000, one.until - 1000) for one in path if one.until > one.began] == [
        ("a", 0, 2),
        ("b", 2, 7),
    ]


def any_bar(number: int, times: list[float], links: list[int], shim: int | None, *, is_open: bool) -> Bar:
    """Return a bar as no honest log has it: links in any direction, cycles included."""
    began, started, until = sorted(times)
    status = Status.RUNNING if is_open else Status.COMPLETED
    pieces = (Piece(Shade.QUEUED, began, started, 1), Piece(Shade.RUNNING, started, until, 1))
    parent, *after = [("t", str(one)) for one in links]
    return Bar(("t", str(number)), "command", None, "", status, None, parent, tuple(after), pieces, began, until,
               is_open, shim)  # fmt: skip


BARS = st.lists(
    st.tuples(
        st.lists(INSTANTS, min_size=3, max_size=3),
        st.lists(st.integers(0, 9), min_size=1, max_size=4),
        st.sampled_from([None, 1, 2]),
        st.booleans(),
    ),
    max_size=10,
).map(lambda drawn: [any_bar(n, *one[:3], is_open=one[3]) for n, one in enumerate(drawn)])


def assert_a_chain(bars: Sequence[Bar]) -> None:
    path, by_id = critical_path(bars), {bar.id: bar for bar in bars}
    assert bool(path) == bool(bars)
    if not bars:
        return
    assert path[-1].until == max(bar.until for bar in bars), "it ends with the whole"
    assert path[0].because is Because.START
    assert all(one.until == after.began for one, after in pairwise(path)), "it has no holes"
    assert all(one.began <= one.until for one in path), "it never goes back"
    for one in path:
        assert by_id[one.bar].began <= one.began
        assert one.until <= by_id[one.bar].until
    for one, after in pairwise(path):
        bar, before = by_id[after.bar], by_id[one.bar]
        assert {
            Because.START: False,
            Because.DEPENDENCY: one.bar in bar.after and one.until == before.until,
            Because.SLOT: before.started is not None and one.until == before.until,
            Because.CHILD: before.parent == after.bar and one.until == before.until,
            Because.PARENT: bar.parent == one.bar and after.began == bar.began,
        }[after.because]


@given(BARS)
def test_the_critical_path_is_a_chain_whatever_the_links(bars: list[Bar]) -> None:
    assert_a_chain(bars)


@given(LOGS)
def test_the_critical_path_of_any_log_is_contiguous_and_ends_with_the_whole(log: list[Event | BadLine]) -> None:
    bars = bars_of(log)
    path = critical_path(bars)
    assert all(one.until == after.began and one.began <= one.until for one, after in pairwise(path))
    assert not bars or path[-1].until == max(bar.until for bar in bars)


def test_ten_thousand_workers_have_a_critical_path() -> None:
    """Each waits for all four before it, has the slot of one of them, and a tenth of them have a parent."""
    bars = [
        any_bar(n, [n / 10, n / 10 + 5, n / 10 + 9], [n - n % 10, *range(max(0, n - 4), n)], n % 50, is_open=False)
        for n in range(10_000)
    ]
    assert_a_chain(bars)


# -- the scale ---------------------------------------------------------------------------------------------------------


@given(
    st.floats(-1e10, 1e10), st.floats(0, 1e11) | st.floats(0, 10), st.integers(2, 20),
    st.sampled_from([0, 3600, -16_200, 20_700]),
)  # fmt: skip
def test_the_marks_of_a_scale_lie_on_it_and_are_neither_too_many_nor_too_few(
    began: float, span: float, most: int, offset: int
) -> None:
    until = began + span
    scale = scale_of(began, until, most, offset)
    assert len(scale.marks) <= most + 1
    assert all(began <= mark <= until + scale.step / 500 for mark in scale.marks)
    assert all(abs(after - one - scale.step) < 1e-4 for one, after in pairwise(scale.marks))
    assert scale.is_clock == (scale.step >= 600)
    if not scale.is_clock:
        assert scale.marks[0] == began
    elif scale.marks:
        assert (scale.marks[0] + offset) % scale.step == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize(
    ("span", "step"),
    [(0, 0.001), (3, 0.5), (45, 5), (600, 60), (7200, 1200), (3 * 86_400, 43_200), (1e8, 200 * 86_400)],
)
def test_the_steps_are_those_that_a_person_counts_in(span: float, step: float) -> None:
    assert scale_of(1e9, 1e9 + span, 10).step == step
