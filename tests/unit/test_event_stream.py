"""At stake: a cursor says where its reader is, to any process that reads the same files."""

from __future__ import annotations

import base64
import errno
import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentctl.adapters import eventlog
from agentctl.adapters.files import AnyPath
from agentctl.adapters.taskdir import Root, TaskDir
from agentctl.domain.events import decode, make_event
from agentctl.operations.fleet import event_stream
from agentctl.operations.fleet.event_stream import (
    MOST_NAMED,
    EventStream,
    Positions,
    StreamedEvent,
    TaskKey,
    cursor_of,
)
from agentctl.operations.fleet.listing_times import ListingTimes, is_being_made
from tests.support import remove

_FEW = MOST_NAMED + 44


#: No two logs begin alike: their first events have times, which these here have not.
_NUMBERS = itertools.count()


def made(root: Root, name: str, count: int = 1) -> None:
    """Make what the stream reads of a task: its file, and its log."""
    task = root.task(name)
    os.makedirs(task.path, exist_ok=True)
    (Path(task.path) / "task.yaml").touch()
    appended(root, name, count)


def appended(root: Root, name: str, count: int = 1) -> None:
    """Append events to the log of a task."""
    with Path(root.task(name).events).open("a", encoding="ascii") as file:
        for number in range(count):
            event = make_event(
                f"2026-01-01T00:00:00.{os.urandom(1)[0]:03}Z", "note", name, "x", {"n": number, "is": next(_NUMBERS)}
            )
            file.write(json.dumps(event) + "\n")


def new_in(stream: EventStream) -> list[StreamedEvent]:
    """Return the events that are new; they must be few enough."""
    found = stream.update()
    assert found is not None
    return found


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> EventStream:
    """Return the stream of a root of more tasks than a cursor names."""
    root = Root(str(tmp_path_factory.mktemp("root")))
    for number in range(_FEW):
        made(root, f"t{number}", 1 + number % 3)
    return EventStream(root)


@st.composite
def reached(draw: st.DrawFn, stream: EventStream) -> dict[TaskKey, int]:
    """Return where a reader may be: it has had less of those tasks that a cursor names, in any order."""
    now = stream.positions
    order = draw(st.permutations(list(now)))
    behind = draw(st.dictionaries(st.sampled_from(order[-MOST_NAMED:]), st.integers(0, 3)))
    return {key: min(now[key], behind.get(key, now[key])) for key in order}


@settings(max_examples=15)
@given(st.data())
def test_a_cursor_leads_back_to_where_it_was_made(many: EventStream, data: st.DataObject) -> None:
    at = data.draw(reached(many))
    assert many.positions_at(cursor_of(at)) == at


@settings(max_examples=30)
@given(st.data())
def test_a_changed_cursor_leads_nowhere_or_somewhere(many: EventStream, data: st.DataObject) -> None:
    whole = bytearray(base64.urlsafe_b64decode(cursor_of(many.positions) + "=="))
    whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    found = many.positions_at(base64.urlsafe_b64encode(whole).rstrip(b"=").decode())
    assert found is None or is_state(many, found)


@settings(max_examples=200)
@given(st.text(max_size=80) | st.binary(max_size=400).map(lambda data: base64.urlsafe_b64encode(b"\1" + data).decode()))
def test_any_text_as_a_cursor(many: EventStream, cursor: str) -> None:
    found = many.positions_at(cursor)
    assert found is None or is_state(many, found)


def is_state(stream: EventStream, found: Positions) -> bool:
    """Return whether a reader can be there: what follows can be read."""
    list(stream.between(found, stream.positions))
    return found.keys() == stream.positions.keys() and all(seq >= 0 for seq in found.values())


def test_a_cursor_is_short(many: EventStream) -> None:
    assert len(cursor_of(many.positions)) < 3000
    huge = dict.fromkeys(many.positions, 2**62)
    assert len(cursor_of(huge)) < 6000


def test_another_process_reads_the_same_cursor(many: EventStream) -> None:
    cursor = cursor_of(many.positions)
    other = EventStream(many._root)
    assert other.positions == many.positions
    assert other.positions_at(cursor) == many.positions


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.sampled_from("amrx"), st.integers(0, 3)), max_size=12))
def test_whatever_happens_each_event_comes_once(tmp_path: Path, steps: list[tuple[str, int]]) -> None:
    folder = tmp_path / os.urandom(8).hex()
    root = Root(str(folder))
    made(root, "t0")
    stream, late = EventStream(root), ""
    had: list[tuple[TaskKey, int]] = []
    late = cursor_of(stream.positions)
    start = dict(stream.positions)
    for step, number in steps:
        name = f"t{number}"
        if step == "a" and root.task(name).events.exists():
            appended(root, name)
        elif step == "m" and not root.task(name).events.exists():
            made(root, name, 2)
        elif step == "r":
            remove(root.task(name).path)
        elif step == "x":
            remove(root.task(name).path)
            made(root, name, 3)
        had += [(row.key, row.seq) for row in new_in(stream)]
    now = stream.positions
    assert len(had) == len(set(had))
    left = {key: [seq for one, seq in had if one == key] for key in now}
    assert all(seqs == list(range(start.get(key, 0) + 1, now[key] + 1)) for key, seqs in left.items())
    assert now.keys() == set(EventStream(root).positions)
    # A reader who comes back with the cursor of the beginning gets the same of what there still is.
    old = EventStream(root).positions_at(late)
    assert old is not None
    again = [(row.key, row.seq) for row in stream.between(old, now)]
    assert sorted(again) == sorted(one for one in had if one[0] in now)


def test_lines_that_are_no_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "_MOST_AT_ONCE", 2 * eventlog.LONGEST_LINE)
    root = Root(str(tmp_path))
    made(root, "t")
    stream = EventStream(root)
    log = Path(root.task("t").events)
    deep = b"[" * 900 + b"]" * 900
    with log.open("ab") as file:
        file.write(b'\n{}\nnull\n{"type":"x","payload":[]}\n\xff\xfe\n' + b"[" * 100_000 + b"\n")
        file.write(b"x" * (eventlog.LONGEST_LINE + 10) + b"\n")
        file.write(b'{"type":"x","payload":{"n":NaN,"i":1e999,"s":"\\ud800","d":' + deep + b'}}\n{"type": "torn')
    found = new_in(stream)
    assert [row.seq for row in found] == list(range(2, 10))
    assert ["problem" in row.event for row in found] == [True] * 7 + [False]
    assert [row.seq for row in stream.between(stream.start(), stream.positions)] == list(range(1, 10))
    with log.open("ab") as file:
        file.write(b'"}\n')
    assert [row.seq for row in new_in(stream)] == [10]


@pytest.mark.parametrize("number", [errno.EIO, errno.EMFILE, errno.ESTALE])
def test_a_log_that_cannot_be_opened_at_the_moment_is_no_log_without_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """A client that came back was told that it had had all: what had happened meanwhile was lost for it."""
    root = Root(str(tmp_path))
    made(root, "a", 3)
    stream = EventStream(root)

    def refuses(*_args: object) -> int:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as broken:
        broken.setattr(event_stream, "open_plain", refuses)
        with pytest.raises(OSError, match=os.strerror(number)):
            list(stream.between(stream.start(), stream.positions))
    assert len(list(stream.between(stream.start(), stream.positions))) == 3
    remove(Path(root.task("a").path))
    assert list(stream.between(stream.start(), stream.positions)) == []


@pytest.mark.parametrize("odd", ["link", "folder", "fifo", "nothing"])
def test_a_log_that_is_none(tmp_path: Path, odd: str) -> None:
    root = Root(str(tmp_path))
    made(root, "t")
    made(root, "u")
    log = Path(root.task("t").events)
    log.unlink()
    if odd == "link":
        log.symlink_to("/etc/passwd")
    elif odd == "folder":
        log.mkdir()
    elif odd == "fifo":
        os.mkfifo(log)
    stream = EventStream(root)
    assert [key.task_id for key in stream.positions] == ["u"]
    appended(root, "u")
    assert len(new_in(stream)) == 1


def with_one_being_made(folder: Path) -> tuple[Root, EventStream, TaskDir]:
    """Return a root, the stream of it, and a task that lacks its log: u."""
    root = Root(str(folder))
    made(root, "t")
    stream, task = EventStream(root), root.task("u")
    os.makedirs(task.path)
    (Path(task.path) / "task.yaml").touch()
    return root, stream, task


def test_a_task_that_is_being_made_is_listed_once_its_log_is_there(tmp_path: Path) -> None:
    root, stream, task = with_one_being_made(tmp_path)
    assert is_being_made(task)
    assert stream.update() == []
    appended(root, "u")
    assert [row.key.task_id for row in new_in(stream)] == ["u"]
    assert not is_being_made(task)


def test_a_task_whose_log_appears_just_after_it_was_looked_for_is_listed_by_the_next_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, stream, _ = with_one_being_made(tmp_path)
    os.utime(root.tasks, (1, 1))  # Long enough ago for the folder's time to tell of every later change.

    look = event_stream._head_of

    def and_then_its_maker_goes_on(looked_at: TaskDir) -> bytes:
        head = look(looked_at)
        if looked_at.id == "u" and not head:
            appended(root, "u")
        return head

    monkeypatch.setattr(event_stream, "_head_of", and_then_its_maker_goes_on)
    assert stream.update() == []
    assert [row.key.task_id for row in new_in(stream)] == ["u"]


def test_two_changes_within_one_tick_are_both_noticed(tmp_path: Path) -> None:
    folder = tmp_path / "tasks"
    folder.mkdir()
    times = ListingTimes(Root(str(tmp_path)))
    assert times.is_due()
    os.utime(folder)
    assert times.is_due()  # It was changed just now: it may be changed again, and look the same.
    assert times.is_due()
    os.utime(folder, (1, 1))
    assert times.is_due()
    assert times.has_changed
    assert not times.is_due()
    times.expire()
    assert times.is_due()
    assert not times.has_changed
    folder.rmdir()
    assert times.is_due()
    assert not times.is_there
    assert not times.is_due()


def test_events_come_in_the_order_of_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "_HEAD", 50)  # The first line is longer than what is looked at of it.
    root = Root(str(tmp_path))
    for name in ("a", "b"):
        made(root, name, 0)
        for number in range(5):
            event = make_event(f"2026-01-01T00:00:{number:02}.{'ab'.index(name)}00Z", "x", name, "x", {})
            eventlog.append(root.task(name).events, [event], durable=False)
    stream = EventStream(root)
    found = [(row.key.task_id, row.seq) for row in stream.between(stream.start(), stream.positions)]
    assert found == [(name, seq) for seq in range(1, 6) for name in "ab"]
    only = stream.between(stream.start(), stream.positions, frozenset({"b"}))
    assert [row.key.task_id for row in only] == ["b"] * 5


def seqs(rows: list[StreamedEvent]) -> list[tuple[str, int]]:
    """Return which events these are."""
    return [(row.key.task_id, row.seq) for row in rows]


def test_a_log_that_cannot_be_read_for_a_moment_costs_nobody_an_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Root(str(tmp_path))
    for name in ("a", "b", "c"):
        made(root, name)
    stream = EventStream(root)
    for name in ("a", "b", "c"):
        appended(root, name, 400)  # More than one piece.
    bad = root.task("b").events

    def failing(path: AnyPath, start: int) -> Iterator[tuple[int, bytes]]:
        for number, piece in enumerate(eventlog.blocks_of(path, start)):
            if number and path == bad:
                raise OSError(5, "EIO")
            yield piece

    with monkeypatch.context() as patch:
        patch.setattr(event_stream, "blocks_of", failing)
        found = seqs(new_in(stream))
    assert {name: sum(one == name for one, _ in found) for name in "ac"} == {"a": 400, "c": 400}
    had = sum(name == "b" for name, _ in found)
    assert 0 < had < 400
    assert {key.task_id: seq for key, seq in stream.positions.items()} == {"a": 401, "b": had + 1, "c": 401}
    found += seqs(new_in(stream))
    assert sorted(found) == [(name, seq) for name in "abc" for seq in range(2, 402)]


def test_after_any_failure_the_positions_are_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Root(str(tmp_path))
    for name in ("a", "b"):
        made(root, name)
    stream = EventStream(root)
    for name in ("a", "b"):
        appended(root, name, 3)
    rows = event_stream._rows

    def failing(key: TaskKey, lines: bytes, first: int) -> list[StreamedEvent]:
        if key.task_id == "b":
            raise MemoryError
        return rows(key, lines, first)

    with monkeypatch.context() as patch:
        patch.setattr(event_stream, "_rows", failing)
        with pytest.raises(MemoryError):
            stream.update()
        stream.pass_over()  # It decodes nothing.
    assert stream.positions == EventStream(root).positions
    appended(root, "b")
    assert seqs(new_in(stream)) == [("b", 5)]


def test_a_log_that_cannot_be_told_apart_for_a_moment_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Root(str(tmp_path))
    made(root, "t", 3)
    stream = EventStream(root)
    (Path(root.task("t").path) / "more").touch()
    stream._listing.expire()

    def failing(*_: object) -> bytes:
        raise OSError(5, "EIO")

    with monkeypatch.context() as patch:
        patch.setattr(event_stream, "_head_of", failing)
        assert new_in(stream) == []
    appended(root, "t")
    assert seqs(new_in(stream)) == [("t", 4)]


def test_too_many_events_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Root(str(tmp_path))
    for name in ("a", "b"):
        made(root, name)
    stream = EventStream(root)
    before = stream.positions
    for name in ("a", "b"):
        appended(root, name, 100)
    monkeypatch.setattr(event_stream, "_MOST_AT_ONCE", os.stat(root.task("a").events).st_size)
    monkeypatch.setattr(event_stream, "decode", None)  # Nothing is decoded.
    assert stream.update() is None
    monkeypatch.undo()
    assert len(list(stream.between(before, stream.positions))) == 200
    appended(root, "a")
    assert seqs(new_in(stream)) == [("a", 102)]


def test_a_torn_line_that_is_long_is_not_too_many_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Root(str(tmp_path))
    made(root, "t")
    stream = EventStream(root)
    monkeypatch.setattr(event_stream, "_MOST_AT_ONCE", 100)
    with Path(root.task("t").events).open("ab") as file:
        file.write(b"x" * 200)
    assert stream.update() == []


def test_the_tasks_that_changed_last_are_named(tmp_path: Path) -> None:
    root = Root(str(tmp_path))
    for number in range(MOST_NAMED + 10):
        made(root, f"t{number}")
    stream = EventStream(root)
    first = next(iter(stream.positions)).task_id
    appended(root, first)
    assert seqs(new_in(stream)) == [(first, 2)]
    assert list(stream.positions)[-1].task_id == first
    cursor, now = cursor_of(stream.positions), stream.positions
    appended(root, first)
    assert EventStream(root).positions_at(cursor) == now


@pytest.mark.parametrize("at_once", [True, False])
def test_reading_many_tasks_again_holds_hardly_more_than_an_event_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: bool
) -> None:
    root = Root(str(tmp_path))
    tasks, count = 40, 20
    for number in range(tasks):
        made(root, f"t{number}", 0)
        hour = 0 if at_once else number
        events = [
            make_event(f"2026-01-{1 + hour // 24:02}T{hour % 24:02}:00:{second:02}.000Z", "x", f"t{number}", "x", {})
            for second in range(count)
        ]
        eventlog.append(root.task(f"t{number}").events, events, durable=False)
    stream = EventStream(root)
    decoded = 0

    def counting(lines: bytes, first: int) -> Any:
        nonlocal decoded
        found = decode(lines, first)
        decoded += len(found)
        return found

    monkeypatch.setattr(event_stream, "decode", counting)
    had: list[StreamedEvent] = []
    for row in stream.between(stream.start(), stream.positions):
        had.append(row)
        assert decoded - len(had) <= (tasks if at_once else 2)
    times = [str(row.event["ts"]) for row in had]
    assert len(times) == tasks * count
    assert times == sorted(times)
