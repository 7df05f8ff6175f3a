"""At stake: a row is in the file whole or not at all, no matter who appends, and a reader needs little memory."""

from __future__ import annotations

import os
import resource
import threading
import tracemalloc
from pathlib import Path

import pytest

from agentctl.adapters.activitylog import ActivityReader, ActivityWriter, replace
from agentctl.adapters.taskdir import TaskDir
from agentctl.domain.activity.fold import ActivityFold
from agentctl.errors import Refused, StorageError
from agentctl.operations.show.activity import rebuild

ROW = b'{"at":"2026-11-21T20:00:00.000Z","type":"tool","id":"t%d","phase":"end","status":"completed"}\n'


def test_a_torn_tail_is_cut_by_the_next_writer(tmp_path: Path) -> None:
    file = tmp_path / "activity.jsonl"
    file.write_bytes(ROW % 1 + b'{"at":"20')
    ActivityWriter(file).write(ROW % 2)
    assert file.read_bytes() == ROW % 1 + ROW % 2


def test_a_torn_line_is_not_read_before_its_newline(tmp_path: Path) -> None:
    file = tmp_path / "activity.jsonl"
    file.write_bytes(ROW % 1 + b"torn")
    reader = ActivityReader(file)
    assert list(reader.blocks()) == [ROW % 1]
    assert list(reader.blocks()) == []
    with file.open("ab") as more:
        more.write(b" no more\n")
    assert list(reader.blocks()) == [b"torn no more\n"]


def test_what_does_not_fit_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "activity.jsonl"
    file.write_bytes(ROW % 1)
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(ROW) * 2, old[1]))
    try:
        with pytest.raises((StorageError, OSError)):
            ActivityWriter(file).write(b"".join(ROW % number for number in range(9)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    assert file.read_bytes() == ROW % 1


def test_a_read_only_place_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ActivityWriter(tmp_path / "gone" / "activity.jsonl").write(ROW % 1)


def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "activity.jsonl"

    def write(first: int) -> None:
        for number in range(first, first + 50):
            ActivityWriter(file).write(ROW % number * 3)

    writers = [threading.Thread(target=write, args=(100 * n,)) for n in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    fold = ActivityFold()
    for block in ActivityReader(file).blocks():
        fold.feed(block)
    assert (fold.lines, fold.bad, fold.calls()[b""]) == (600, 0, 200)


def test_a_line_longer_than_a_block_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "activity.jsonl"
    long = b'{"type":"message","text":"' + b"x" * (3 << 20) + b'"}\n'
    file.write_bytes(ROW % 1 + long + ROW % 2)
    assert b"".join(ActivityReader(file).blocks()) == file.read_bytes()
    fold = ActivityFold(10)
    for block in ActivityReader(file).blocks():
        fold.feed(block)
    assert (fold.lines, fold.bad) == (3, 0)


def test_the_fold_of_a_large_file_takes_little_memory(tmp_path: Path) -> None:
    file = tmp_path / "activity.jsonl"
    start = ROW.replace(b'"end"', b'"start"').replace(b'"}\n', b'","text":"' + b"x" * 2000 + b'"}\n')
    with file.open("wb") as out:
        for number in range(2500):
            out.write(start % number + ROW % number)
    tracemalloc.start()
    fold = ActivityFold(20)
    for block in ActivityReader(file).blocks():
        fold.feed(block)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert fold.calls()[b""] == 2500
    assert peak < file.stat().st_size


def test_a_replaced_file_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "activity.jsonl"
    file.write_bytes(ROW % 1 + ROW % 2)
    reader = ActivityReader(file)
    assert list(reader.blocks())
    assert not reader.is_replaced()
    assert replace(file, [ROW % 3]) == 1
    assert reader.is_replaced()
    reader.restart()
    assert list(reader.blocks()) == [ROW % 3]


def test_a_rebuild_that_fails_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "activity.jsonl"
    file.write_bytes(ROW % 1)

    def lines() -> list[bytes]:
        raise ValueError("no such output")

    with pytest.raises(ValueError, match="no such output"):
        replace(file, (line for line in lines()))
    assert file.read_bytes() == ROW % 1
    assert os.listdir(tmp_path) == ["activity.jsonl"]


def test_a_rebuild_keeps_what_the_worker_reported_itself_and_waits_for_its_end(tmp_path: Path) -> None:
    worker = TaskDir(str(tmp_path)).worker("a1")
    Path(worker.path).mkdir(parents=True)
    reported = (
        b'{"at": "2026-11-21T20:00:02.000Z", "type": "message", "id": "report-00", "phase": "end", "text": "found"}\n'
    )
    Path(worker.activity).write_bytes(ROW % 1 + reported + ROW % 2)
    made = [row.replace(b"20:00:00", b"20:00:0%d" % second) for second, row in ((1, ROW % 7), (3, ROW % 8))]
    with pytest.raises(Refused, match="a1 has not ended"):
        rebuild(worker, made)
    Path(worker.exit).write_bytes(b"{}")
    assert rebuild(worker, made) == 3
    assert Path(worker.activity).read_bytes() == made[0] + reported + made[1]
    assert rebuild(worker, made) == 3
    assert Path(worker.activity).read_bytes() == made[0] + reported + made[1]
