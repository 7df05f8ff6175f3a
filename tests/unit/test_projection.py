"""At stake: the fold alone says what the current state is, so it must be right for any events in any order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.domain import events as ev
from agentctl.domain.events import BadLine, Event
from agentctl.domain.states import MOVES, TERMINAL, Status
from agentctl.domain.worker.projection import MOST_DAMAGE, TaskView, WorkerView

AGENT_EVENTS = (
    ev.QUEUED, ev.STARTED, ev.BLOCKED, ev.RESUMED, ev.RETRYING, ev.PAUSED, ev.UNPAUSED, ev.CANCEL_REQUESTED,
    ev.CANCEL_FAILED, ev.COMPLETED, ev.FAILED, ev.CANCELLED,
)  # fmt: skip
NAMES = ("a1", "a2", "b-1")
Row = tuple[int, Event]

PAYLOADS = st.fixed_dictionaries(
    {},
    optional={
        "command": st.text(max_size=5),
        "parent": st.sampled_from(NAMES),
        "reason": st.sampled_from(["exit_code", "lost", "signal"]),
        "exitCode": st.integers(0, 255),
        "attempt": st.integers(1, 9),
        "pid": st.integers(2, 9999),
        "survivors": st.lists(st.fixed_dictionaries({"pid": st.integers(2, 99)}), max_size=2),
    },
)
EVENTS = st.builds(
    lambda type_, instance, payload, n: ev.make_event(f"t{n}", type_, "t", "user", payload, instance),
    st.sampled_from(AGENT_EVENTS), st.sampled_from(NAMES), PAYLOADS, st.integers(0, 999),
)  # fmt: skip
LOGS = st.lists(EVENTS, max_size=20)


def fold(*events: Event, first: int = 1) -> TaskView:
    view = TaskView()
    view.apply(enumerate(events, first))
    return view


TOLD = sorted(
    WorkerView.__annotations__ | dict.fromkeys(("agent", "command", "status", "depth", "attempt", "paused"), "")
)


def told(worker: WorkerView, without: tuple[str, ...] = ()) -> dict[str, Any]:
    return {name: getattr(worker, name) for name in TOLD if name not in without}


def all_told(view: TaskView, without: tuple[str, ...] = ()) -> dict[str, dict[str, Any]]:
    return {name: told(worker, without) for name, worker in view.workers.items()}


#: The fields of a worker's end, which nothing may change afterwards.
OF_THE_END = (
    "status", "reason", "exit_code", "signal", "duration_s", "ended_at", "end_seq", "pid", "started_at", "attempt",
    "paused", "survivors",
)  # fmt: skip


@given(LOGS)
def test_the_first_terminal_event_of_a_worker_is_its_end(log: list[Event]) -> None:
    view = fold(*log)
    for name in NAMES:
        ends = [(seq, e) for seq, e in enumerate(log, 1) if e["agentInstance"] == name and e["type"] in ev.END_STATUS]
        worker = view.workers.get(name)
        if ends:
            seq, first = ends[0]
            assert worker is not None
            assert worker.end_seq == seq
            assert worker.status is ev.END_STATUS[first["type"]]
            assert worker.reason == first["payload"].get("reason")
            assert worker.exit_code == first["payload"].get("exitCode")
        else:
            assert worker is None or not worker.is_terminal


@given(LOGS, LOGS)
def test_no_event_after_its_end_moves_a_worker(before: list[Event], after: list[Event]) -> None:
    ended = {name: worker for name, worker in fold(*before).workers.items() if worker.is_terminal}
    later = fold(*before, *after)
    for name, worker in ended.items():
        for field in OF_THE_END:
            assert getattr(later.workers[name], field) == getattr(worker, field), field


@given(LOGS)
def test_a_worker_moves_only_as_the_table_allows(log: list[Event]) -> None:
    view = TaskView()
    before = dict.fromkeys(NAMES, Status.QUEUED)
    for seq, event in enumerate(log, 1):
        view.apply([(seq, event)])
        for name, worker in view.workers.items():
            assert worker.status is before[name] or worker.status in MOVES[before[name]]
            before[name] = worker.status


@given(LOGS, st.integers(0, 40))
def test_reading_a_log_in_pieces_is_reading_it_whole(log: list[Event], cut: int) -> None:
    view = fold(*log[:cut])
    view.apply(list(enumerate(log, 1))[cut:])
    assert all_told(view) == all_told(fold(*log))


@given(LOGS, st.integers(0, 40))
def test_a_tail_that_was_written_twice_changes_no_end_and_no_delivery_of_one(log: list[Event], cut: int) -> None:
    once, twice = fold(*log), fold(*log, *log[cut:])
    ends = [item for item in once.deliverables() if item.status in TERMINAL]
    assert [item for item in twice.deliverables() if item.status in TERMINAL] == ends


@given(LOGS)
def test_an_event_that_was_written_twice_in_a_row_is_one_event(log: list[Event]) -> None:
    doubled = [event for event in log for _ in (1, 2)]
    places = ("end_seq", "block_seq", "attempt")  # line numbers differ; a retry without a number counts
    assert all_told(fold(*doubled), places) == all_told(fold(*log), places)


@given(LOGS, st.randoms(use_true_random=False))
def test_the_events_of_different_workers_do_not_touch_each_other(log: list[Event], random: Any) -> None:
    lanes = {name: [event for event in log if event["agentInstance"] == name] for name in NAMES}
    order = [name for name, events in lanes.items() for _ in events]
    random.shuffle(order)
    shuffled = [lanes[name].pop(0) for name in order]
    places = ("end_seq", "block_seq")
    assert all_told(fold(*shuffled), places) == all_told(fold(*log), places)


@given(PAYLOADS, PAYLOADS)
def test_started_before_queued_is_the_same_as_after_it(queued: dict[str, Any], started: dict[str, Any]) -> None:
    one = ev.make_event("t1", ev.QUEUED, "t", "user", queued, "a1")
    two = ev.make_event("t2", ev.STARTED, "t", "agentctl", started, "a1")
    assert all_told(fold(one, two)) == all_told(fold(two, one))
    assert fold(two, one).workers["a1"].status is Status.RUNNING


@given(LOGS)
def test_what_can_be_given_out_is_each_worker_once_in_the_order_of_the_log(log: list[Event]) -> None:
    view = fold(*log)
    given_out = view.deliverables()
    assert [item.seq for item in given_out] == sorted({item.seq for item in given_out})
    assert {item.instance for item in given_out} == {
        name for name, worker in view.workers.items() if worker.is_terminal or worker.status is Status.BLOCKED
    }
    assert all(item.status is view.workers[item.instance].status for item in given_out)


def test_a_second_block_after_a_resume_is_given_out_again() -> None:
    def event(kind: str) -> Event:
        return ev.make_event("t", kind, "t", "agentctl", {}, "a1")

    view = fold(event(ev.STARTED), event(ev.BLOCKED))
    assert [item.seq for item in view.deliverables()] == [2]
    view.apply([(3, event(ev.RESUMED))])
    assert view.deliverables() == []
    view.apply([(4, event(ev.BLOCKED))])
    assert [item.seq for item in view.deliverables()] == [4]


def test_a_later_event_without_the_agents_type_does_not_erase_it() -> None:
    first = ev.make_event("t", ev.QUEUED, "t", "user", {"agent": "explore"}, "a1")
    again = ev.make_event("t", ev.QUEUED, "t", "user", {}, "a1")
    assert fold(first, again).workers["a1"].agent == "explore"


def test_descendants_are_found_at_every_depth_each_once() -> None:
    tree = {"b": "a", "c": "b", "d": "b", "e": "d", "x": None, "a": None}
    log = [ev.make_event("t", ev.QUEUED, "t", "user", {"parent": up} if up else {}, name) for name, up in tree.items()]
    view = fold(*log)
    assert sorted(view.descendants("a")) == ["b", "c", "d", "e"]
    assert view.descendants("x") == []


# -- values that are not events --------------------------------------------------------------------------------

JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
KEYS = st.sampled_from(
    ["agent", "command", "parent", "depth", "attempt", "pid", "reason", "exitCode", "signal", "durationSeconds",
     "survivors", "shimPid"]
)  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(AGENT_EVENTS), JUNK, st.dictionaries(KEYS, JUNK, max_size=6)), max_size=8))
def test_values_of_the_wrong_kind_never_get_out_of_the_fold(rows: list[tuple[str, Any, dict[str, Any]]]) -> None:
    events = [{"ts": ts, "type": kind, "agentInstance": "a1", "payload": payload} for kind, ts, payload in rows]
    for worker in fold(*events).workers.values():
        assert isinstance(worker.command, str)
        assert isinstance(worker.agent, str)
        assert isinstance(worker.attempt, int)
        assert isinstance(worker.depth, int)
        assert all(isinstance(value, str | None) for value in (worker.parent, worker.reason, worker.signal))
        assert all(isinstance(at, str | None) for at in (worker.queued_at, worker.started_at, worker.ended_at))
        assert isinstance(worker.duration_s, int | float | None)
        assert all(isinstance(one, dict) for one in worker.survivors)


FIELDS = [
    (ev.QUEUED, "driver", "driver", str), (ev.QUEUED, "agentId", "agent_id", str), (ev.QUEUED, "parent", "parent", str),
    (ev.QUEUED, "depth", "depth", int), (ev.STARTED, "pid", "pid", int), (ev.STARTED, "shimPid", "shim_pid", int),
    (ev.RETRYING, "attempt", "attempt", int), (ev.RETRIED, "pid", "pid", int),
    (ev.FAILED, "exitCode", "exit_code", int), (ev.FAILED, "signal", "signal", str),
    (ev.FAILED, "reason", "reason", str), (ev.FAILED, "uncollected", "uncollected", int),
]  # fmt: skip


@pytest.mark.parametrize(("event", "key", "field", "kind"), FIELDS)
def test_a_value_of_another_kind_counts_as_none(event: str, key: str, field: str, kind: type) -> None:
    def found(payload: dict[str, Any]) -> object:
        told = {"driver": "claude"} if key == "agentId" else {}
        return getattr(fold(ev.make_event("t", event, "t", "user", told | payload, "a1")).workers["a1"], field)

    for value in (None, 7, 1.5, "x", [5], {"a": 1}):
        assert found({key: value}) == (value if isinstance(value, kind) else found({}))


def test_a_survivor_that_is_none_is_left_out() -> None:
    told = {"survivors": [5, {"pid": 7}, None]}
    view = fold(ev.make_event("t", ev.CANCEL_FAILED, "t", "agentctl", told, "a1"))
    assert [dict(one) for one in view.workers["a1"].survivors] == [{"pid": 7}]


@pytest.mark.parametrize("name", ["../x", "/etc", "-x", "", "a b", "é", "x" * 65, ".", "a\n"])
def test_an_event_of_an_impossible_name_makes_no_worker_and_is_named_by_its_line(name: str) -> None:
    view = fold(ev.make_event("t", ev.STARTED, "t", "agentctl", {}, name))
    assert view.workers == {}
    assert [bad.seq for bad in view.damage] == ([1] if name else [])


def test_a_bad_line_is_kept_as_damage_and_moves_nobody() -> None:
    view = TaskView()
    view.apply([BadLine(1, "not JSON"), (2, ev.make_event("t", ev.STARTED, "t", "agentctl", {}, "a1"))])
    assert view.damage == [BadLine(1, "not JSON")]
    assert view.bad_lines == 1
    assert view.workers["a1"].status is Status.RUNNING


def test_of_many_bad_lines_the_first_are_kept_and_all_are_counted() -> None:
    view = TaskView()
    view.apply(BadLine(seq, "not JSON") for seq in range(1, 3 * MOST_DAMAGE + 1))
    assert [bad.seq for bad in view.damage] == list(range(1, MOST_DAMAGE + 1))
    assert view.bad_lines == 3 * MOST_DAMAGE
