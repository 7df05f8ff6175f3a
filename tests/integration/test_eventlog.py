"""At stake: the log is the truth: a crash of a writer, garbage or many writers cost at most the torn line."""

from __future__ import annotations

import errno
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.adapters import eventlog
from agentctl.domain.events import BadLine, encode, make_event
from agentctl.errors import StorageError
from tests.ready import ENDED, ended_task
from tests.steps import Task, row, spawn, statuses
from tests.support import REPOSITORY, alike, run, start_argv, worker

#: Lines that agentctl never writes, as a full disk, an editor or a stranger may leave them.
GARBAGE = [
    b"", b"not json", b"{}", b"[1,2]", b"null", b"\xff\xfe\x00", b"\x00" * 64, b"[" * 50_000,
    b'{"type":"agent.started"',
    b'{"type":"agent.failed","payload":{},"agentInstance":7}', b'{"type":"agent.failed","payload":[]}',
    b'[{"type":"agent.failed","agentInstance":"a1","payload":{}}]', b'{"type":"agent.failed","agentInstance":"a1"}',
]  # fmt: skip


@pytest.fixture
def task(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Task:
    return ended_task(tmp_path_factory)


def log_of(task: Task) -> Path:
    return task.path / "events.jsonl"


def add(task: Task, *events: dict[str, Any]) -> None:
    with log_of(task).open("ab") as log:
        log.write(b"".join(json.dumps(event).encode() + b"\n" for event in events))


def event(number: int, instance: str = "a1") -> dict[str, Any]:
    return make_event("t", "agent.note", "t1", "user", {"number": number}, instance)


def damage(rows: list[Any]) -> list[BadLine]:
    return [one for one in rows if isinstance(one, BadLine)]


# -- cut -------------------------------------------------------------------------------------------------------


def test_a_log_cut_at_any_byte_reads_as_a_beginning_of_itself(task: Task, tmp_path: Path) -> None:
    data = log_of(task).read_bytes()
    whole = eventlog.LogReader(str(log_of(task))).read_new()
    piece = tmp_path / "cut.jsonl"
    for cut in range(len(data) + 1):
        piece.write_bytes(data[:cut])
        assert eventlog.LogReader(str(piece)).read_new() == whole[: data[:cut].count(b"\n")]


def test_a_log_that_grows_is_read_once_however_it_was_torn_in_between(task: Task, tmp_path: Path) -> None:
    data = log_of(task).read_bytes()
    piece = tmp_path / "growing.jsonl"
    reader, rows = eventlog.LogReader(str(piece)), []
    for cut in range(0, len(data) + 97, 97):
        piece.write_bytes(data[:cut])
        rows += reader.read_new()
    assert rows == eventlog.LogReader(str(log_of(task))).read_new()


@given(
    st.lists(st.sampled_from([0, 1, 200, 30_000, 65_000, 65_400, 65_536, 70_000, 140_000]), max_size=12), st.booleans()
)
def test_a_log_is_read_whole_wherever_its_pieces_end(sizes: list[int], is_torn: bool) -> None:
    """The log is read in pieces; a line may be longer than a piece, or end exactly with one."""
    events = [{**event(number), "payload": {"text": "x" * size}} for number, size in enumerate(sizes)]
    with tempfile.NamedTemporaryFile() as log:
        log.write(encode(events) + (b'{"torn' if is_torn else b""))
        log.flush()
        assert eventlog.LogReader(log.name).read_new() == list(enumerate(events, 1))


@pytest.mark.parametrize("places", [slice(None, None, 3), *alike(slice(None))], ids=["some", "all"])
def test_commands_work_on_a_cut_log_and_tell_the_ends_that_are_on_disk(task: Task, places: slice) -> None:
    """Ten places: within lines, at their ends, at the beginning. A reader writes down again what it has proved."""
    log = log_of(task)
    data = log.read_bytes()
    cuts = [0, 1, *(len(data) * tenth // 8 + tenth % 3 for tenth in range(1, 8)), len(data) - 1]
    for number, cut in [*enumerate(cuts)][places]:
        log.write_bytes(data[:cut])
        told = statuses()
        assert {**ENDED, **told} == ENDED, f"cut at {cut}"
        assert set(told) >= {name for name in ENDED if f'"{name}"'.encode() in data[:cut].rpartition(b"\n")[0]}
        command = (["events"], ["wait-any", "--timeout-seconds", "0"], ["tasks"], ["show", "a2"], ["doctor"])[
            number % 5
        ]
        ended = run(*command, check=False)
        assert ended.code in (0, 6), f"cut at {cut}\n{ended}"
        assert not damage(eventlog.LogReader(str(log)).read_new())


def test_the_next_writer_cuts_a_torn_tail_off(task: Task) -> None:
    log = log_of(task)
    whole = log.read_bytes()
    log.write_bytes(whole + b'{"ts":"2026-11-21T20:13:00Z","type":"agent.que')
    assert statuses() == ENDED
    assert "without a newline" in run("doctor").out
    spawn(worker("exits", 0), "--wait", name="a4")
    after = log.read_bytes()
    assert after.startswith(whole + b'{"ts":')
    assert [json.loads(line)["agentInstance"] for line in after[len(whole) :].splitlines()] == ["a4"] * 3


def test_a_log_that_is_one_torn_line_is_begun_anew(tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    log.write_bytes(b'{"torn' * 50_000)
    eventlog.append(str(log), [event(1)])
    assert eventlog.LogReader(str(log)).read_new() == [(1, event(1))]


@pytest.mark.slow
def test_a_log_that_was_removed_is_begun_again_and_reading_it_is_no_error(task: Task) -> None:
    log_of(task).unlink()
    assert run("list", "--json").json == []
    assert run("events").out == ""
    spawn(worker("exits", 0), "--wait", name="b1")
    assert statuses() == {"b1": "completed"}


# -- garbage ---------------------------------------------------------------------------------------------------


def test_every_garbage_line_is_named_by_its_number_and_skipped(task: Task) -> None:
    log = log_of(task)
    good = log.read_bytes().splitlines(keepends=True)
    lines = [line for number, line in enumerate(good) for line in [*([GARBAGE[number] + b"\n"]), line]]
    lines += [line + b"\n" for line in GARBAGE[len(good) :]]
    log.write_bytes(b"".join(lines))
    numbers = [number for number, line in enumerate(lines, 1) if line not in good]
    assert len(numbers) == len(GARBAGE)

    listed = run("list", "--json")
    assert {one["agentInstance"]: one["status"] for one in listed.json} == ENDED
    assert [int(told.split(":")[2]) for told in listed.err.splitlines()] == numbers
    assert all(told.startswith(f"warning: {log}:") for told in listed.err.splitlines())

    rows = run("events", "--json").json_lines
    assert [one["seq"] for one in rows] == list(range(1, len(lines) + 1))
    assert [one["seq"] for one in rows if "problem" in one] == numbers
    assert str(log) in run("doctor", check=False).out
    assert run("wait-any", "--json").json["agentInstance"] == "a1"


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"agent.completed","agentInstance":"a1"}',
        *alike(b'[{"agentInstance":"a1","type":"agent.completed"}]'),
    ],
)
def test_an_end_whose_line_was_damaged_is_told_again_and_given_out(task: Task, line: bytes) -> None:
    """A damaged line that readers skip must not count as the event either: the end would never be given out."""
    log = log_of(task)
    lines = log.read_bytes().splitlines(keepends=True)
    (at,) = [number for number, one in enumerate(lines) if b"agent.completed" in one]
    lines[at] = line + b"\n"
    log.write_bytes(b"".join(lines))
    assert {run("wait-any", "--json").json["agentInstance"] for _ in ENDED} == set(ENDED)
    assert row("a1")["status"] == "completed"
    assert log.read_bytes().count(b'"agent.completed","taskId"') == 1


def test_a_name_that_leads_out_of_the_task_is_damage_and_nothing_is_made_there(task: Task, tmp_path: Path) -> None:
    names = ["../../../evil", f"{tmp_path}/evil", "..", "a/b", "-x", "x" * 65, "\x1b[2J"]
    add(
        task,
        *(make_event("t", kind, "t1", "x", {}, name) for name in names for kind in ("agent.queued", "agent.failed")),
    )
    listed = run("list", "--json")
    assert {one["agentInstance"] for one in listed.json} == set(ENDED)
    assert listed.err.count("is not the name of a worker") == 2 * len(names)
    assert "\x1b" not in listed.err
    run("doctor", "--fix", check=False)
    assert not [path for path in tmp_path.rglob("*") if path.name in ("evil", "b", "-x")]
    assert sorted(path.name for path in (task.path / "agents").iterdir()) == sorted(ENDED)
    assert not (task.path / "exit.json").exists()


@pytest.mark.slow
def test_values_of_a_wrong_kind_break_no_command(task: Task) -> None:
    payloads: list[dict[str, Any]] = [
        {"durationSeconds": "x"}, {"exitCode": [], "reason": {}}, {"survivors": 5},
        {"command": {"a": 1}, "parent": [1]},
        {"agent": "x}\n  - evil", "depth": "deep"}, {"attempt": None, "pid": "1"},
    ]  # fmt: skip
    kinds = ("agent.queued", "agent.retrying", "agent.cancel_failed", "agent.failed")
    for number, payload in enumerate(payloads):
        for kind in kinds:
            add(task, {**make_event("t", kind, "t1", "x", payload, f"z{number}"), "ts": 5})
    for args in (
        ["list"],
        ["list", "--json"],
        ["show", "a1"],
        ["tasks"],
        ["doctor", "--fix"],
        ["wait-any"],
        ["events"],
    ):
        ended = run(*args, check=False)
        assert "bug" not in ended.err, str(ended)
    assert statuses().items() >= ENDED.items()
    assert task.roster()["a1"] == "completed"


# -- crowds ----------------------------------------------------------------------------------------------------

WRITER = """
import os, sys
sys.path.insert(0, sys.argv[1])
from agentctl.adapters import eventlog
from agentctl.domain.events import make_event
log, name, count, most = sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
os.fdatasync = lambda fd: None  # thousands of flushes would try the disk, not the log
for number in range(count):
    payload = {"number": number, "filler": "x" * (number * 37 % most)}
    eventlog.append(log, [make_event("t", "n", "t1", name, payload, name)])
"""


def start_writer(log: Path, name: str, count: int, most: int) -> Any:
    return start_argv([sys.executable, "-c", WRITER, str(REPOSITORY), str(log), name, str(count), str(most)])


def test_no_line_of_many_writers_is_lost_torn_or_out_of_its_writers_order(tmp_path: Path) -> None:
    log, count = tmp_path / "events.jsonl", 500
    writers = {f"w{number}": start_writer(log, f"w{number}", count, 700) for number in range(8)}
    reader = eventlog.LogReader(str(log))
    rows: list[Any] = []
    while any(process.poll() is None for process in writers.values()):
        rows += reader.read_new()
    rows += reader.read_new()
    assert [process.returncode for process in writers.values()] == [0] * len(writers)
    assert not damage(rows)
    assert len(rows) == len(writers) * count
    for name in writers:
        assert [one[1]["payload"]["number"] for one in rows if one[1]["by"] == name] == list(range(count))


@pytest.mark.slow
def test_a_killed_writer_costs_the_others_nothing(tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    log.touch()
    for _ in range(4):
        size = log.stat().st_size
        process = start_writer(log, "w1", 1_000_000, 300_000)
        while process.poll() is None and log.stat().st_size < size + 1_000_000:
            pass  # until the writer is in the middle of its lines
        process.kill()
        process.wait()
        eventlog.append(str(log), [event(1)])
    rows = eventlog.LogReader(str(log)).read_new()
    assert not damage(rows)
    assert sum(one[1]["type"] == "agent.note" for one in rows if not isinstance(one, BadLine)) == 4


def test_events_that_belong_together_stand_together_or_not_at_all(tmp_path: Path) -> None:
    log, seen = str(tmp_path / "events.jsonl"), []

    def look(fd: int) -> bool:
        seen.append(os.fstat(fd).st_size)
        return len(seen) > 1

    assert eventlog.append(log, [event(1), event(2)], unless=look) == Path(log).stat().st_size
    assert eventlog.append(log, [event(3)], unless=look) is None
    assert eventlog.LogReader(log).read_new() == [(1, event(1)), (2, event(2))]
    assert seen == [0, Path(log).stat().st_size]


def test_a_writer_that_stands_still_stops_no_reader(task: Task) -> None:
    held = "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, 2); print('held', flush=True); input()"
    holder = start_argv([sys.executable, "-c", held, str(log_of(task))], stdin=-1)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    assert statuses() == ENDED
    assert run("events").out.count("\n") == len(log_of(task).read_bytes().splitlines())
    holder.communicate("\n", timeout=20)


def test_what_a_disk_did_not_flush_is_in_the_log_and_is_written_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "events.jsonl"
    eventlog.append(log, [event(1)])
    monkeypatch.setattr(os, "fdatasync", fails_to_flush)
    with pytest.raises(eventlog.NotFlushed, match=r"cannot flush .*events\.jsonl: Input/output error") as refused:
        eventlog.append(log, [event(2)])
    with pytest.raises(StorageError):
        eventlog.flush_again(log, refused.value)
    monkeypatch.undo()
    eventlog.append(log, [event(3)])
    before = log.read_bytes()
    os.utime(log, (0, 0))
    eventlog.flush_again(log, refused.value)
    assert log.read_bytes() == before == b"".join(encode([event(number)]) for number in (1, 2, 3))
    assert os.stat(log).st_mtime > 0
    log.write_bytes(before[: refused.value.begin])
    with pytest.raises(StorageError):
        eventlog.flush_again(log, refused.value)


def fails_to_flush(_fd: int) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))
