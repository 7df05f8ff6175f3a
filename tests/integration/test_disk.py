"""At stake: a full or read-only disk loses no result: what cannot be written is refused, kept, or written later."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentctl.adapters import eventlog, locks
from agentctl.domain.events import make_event
from agentctl.errors import StorageError
from tests.ready import made_once
from tests.snapshots import snapshot
from tests.steps import Task, new_task, spawn, statuses
from tests.support import alike, run, wait_for_text, wait_until, worker

PAGE = 4096

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")


def mount(*args: str | Path) -> None:
    done = subprocess.run(["mount", *map(str, args)], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"no mounts here: {done.stderr.strip()}")


class Disk:
    """A small file system that can be filled up to any page."""

    def __init__(self, folder: Path) -> None:
        self.path = folder
        self._filler = folder / "filler"

    def fill(self, *, free_pages: int = 0) -> None:
        """Leave this many pages free; the last page of the log is full too."""
        with contextlib.suppress(OSError), self._filler.open("ab", buffering=0) as file:
            while True:
                file.write(bytes(PAGE))
        os.truncate(self._filler, self._filler.stat().st_size // PAGE * PAGE - free_pages * PAGE)

    @property
    def is_full(self) -> bool:
        return os.statvfs(self.path).f_bavail == 0

    def make_room(self) -> None:
        self._filler.unlink()


@pytest.fixture
def disk(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount("-t", "tmpfs", "-o", "size=1m,mode=0700", "agentctl-test", folder)
    monkeypatch.setenv("AGENTCTL_ROOT", str(folder / ".agentctl"))
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill_last_page_of(log: Path) -> None:
    """Fill the last page of the log, so that the next line needs a new page, however short it is."""
    room = PAGE - log.stat().st_size % PAGE
    line = make_event("t", "note", "t1", "user", {"filler": ""})
    needed = len(json.dumps(line, separators=(",", ":"))) + 1
    filler = room - needed if room > needed else room + PAGE - needed
    eventlog.append(str(log), [make_event("t", "note", "t1", "user", {"filler": "x" * filler})])
    assert log.stat().st_size % PAGE == 0


def test_a_short_write_is_taken_back_and_the_next_one_is_whole(disk: Disk) -> None:
    log = disk.path / "events.jsonl"
    event = make_event("t", "note", "t1", "user", {"filler": "x" * 3 * PAGE})
    eventlog.append(str(log), [event])
    before = log.read_bytes()
    disk.fill(free_pages=1)  # there is room for a part of the event
    with pytest.raises(StorageError, match="the disk is full"):
        eventlog.append(str(log), [event])
    assert log.read_bytes() == before
    disk.make_room()
    eventlog.append(str(log), [event])
    assert log.read_bytes() == before * 2


@pytest.mark.parametrize("queue", [False, *alike(True)], ids=["now", "queue"])
@pytest.mark.slow
def test_a_spawn_that_a_full_disk_stops_anywhere_never_says_one_thing_and_does_another(
    disk: Disk, tmp_path: Path, queue: bool
) -> None:
    """Tried with no free page up to enough: a refused worker never runs, an accepted one runs once."""
    task = new_task()
    ran = tmp_path / "ran"
    codes = []
    for pages in (0, 1, 2, 3, 4, 6):
        fill_last_page_of(task.path / "events.jsonl")
        disk.fill(free_pages=pages)
        argv = ["/bin/sh", "-c", f"echo {pages} >> {ran}"]
        told = spawn(argv, *(["--queue"] if queue else []), name=f"a{pages}", check=False)
        codes.append(told.code)
        assert "bug" not in told.err
        assert told.code == 0 or "the disk is full" in told.err or "No space left" in told.err
        disk.make_room()
        run("wait-all", check=False, timeout=20)
        lines = ran.read_text().split() if ran.exists() else []
        assert lines.count(str(pages)) == (1 if told.code == 0 else 0), f"{pages} pages\n{told}"
        found = statuses().get(f"a{pages}")
        assert found == "completed" if told.code == 0 else found in (None, "failed")
    assert codes[0] == 1
    assert codes[-1] == 0
    assert not (task.path / "shim.log").exists()
    snapshot(task.path)  # Nothing stays half written.
    assert list((task.path / "queue").iterdir()) == []


def test_on_a_full_disk_a_batch_is_refused_whole_and_what_runs_goes_on(disk: Disk, tmp_path: Path) -> None:
    task = new_task(cap=3)
    spawn(worker("exits", 0, "--after-file", tmp_path / "gate"), name="a1")
    fill_last_page_of(task.path / "events.jsonl")
    disk.fill(free_pages=3)
    batch = "".join(json.dumps({"name": f"b{number}", "argv": ["true"]}) + "\n" for number in range(20))
    refused = run("spawn", "--batch", "-", stdin=batch, check=False)
    assert refused.code == 1
    assert "the disk is full" in refused.err
    assert statuses() == {"a1": "running"}
    assert [path.name for path in (task.path / "agents").iterdir()] == ["a1"]
    assert list((task.path / "queue").iterdir()) == []
    disk.make_room()
    (tmp_path / "gate").touch()
    assert run("wait", "a1").code == 0


def test_a_shim_on_a_full_disk_keeps_result_and_slot_and_ends_truly_later(disk: Disk, tmp_path: Path) -> None:
    task = new_task(cap=1)
    spawn(worker("exits", 3, "--after-file", tmp_path / "gate"), name="a1")
    pid = int(json.loads((task.agent("a1") / "worker.json").read_bytes())["pid"])
    run("spawn", "--queue", "--name", "a2", "--", "true")
    fill_last_page_of(task.path / "events.jsonl")
    disk.fill()
    (tmp_path / "gate").touch()
    wait_until(lambda: not Path("/proc", str(pid)).exists(), what="the worker to be reaped")
    assert task.exit("a1") is None
    assert statuses() == {"a1": "running", "a2": "queued"}, "nothing new is started, nothing is made up"
    disk.make_room()
    task.ended("a1", "a2")
    ended = task.exit("a1")
    assert ended is not None
    assert (ended["status"], ended["reason"], ended["exitCode"]) == ("failed", "exit_code", 3)
    assert statuses() == {"a1": "failed", "a2": "completed"}


def test_a_retry_that_a_full_disk_forbids_leaves_the_attempts_own_end(disk: Disk, tmp_path: Path) -> None:
    task = new_task(cap=1)
    spawn(
        worker("exits", 3, "--after-file", tmp_path / "gate"), "--retries", "5", "--retry-delay-seconds", "0", name="a1"
    )
    pid = int(json.loads((task.agent("a1") / "worker.json").read_bytes())["pid"])
    fill_last_page_of(task.path / "events.jsonl")
    disk.fill()
    (tmp_path / "gate").touch()
    wait_until(lambda: not Path("/proc", str(pid)).exists(), what="the attempt to be reaped")
    disk.make_room()
    task.ended("a1")
    assert (task.exit("a1") or {})["exitCode"] == 3
    assert statuses() == {"a1": "failed"}


def test_a_task_that_cannot_be_made_takes_no_name(disk: Disk) -> None:
    new_task()
    disk.fill(free_pages=1)
    for args in (["new", "x", "--id", "t2"], ["new", "--template", "survey", "--id", "t2"]):
        refused = run(*args, check=False)
        assert refused.code == 1
        assert "bug" not in refused.err
        assert "No space left" in refused.err or "the disk is full" in refused.err
    assert [one["taskId"] for one in run("tasks", "--json").json] == ["t1"]
    disk.make_room()
    run("new", "x", "--id", "t2")


@pytest.mark.slow
def test_what_needs_the_disk_says_that_it_is_full(disk: Disk) -> None:
    task = new_task()
    spawn(worker("sleeps", 100), name="a1")
    wait_for_text(task.agent("a1") / "stdout.log")
    fill_last_page_of(task.path / "events.jsonl")
    disk.fill()
    for args in (["send", "a1", "hello"], ["use", "t1"]):
        refused = run(*args, check=False)
        assert refused.code == 1, str(refused)
        assert "the disk is full" in refused.err or "No space left" in refused.err, str(refused)
    assert statuses() == {"a1": "running"}
    disk.make_room()
    assert run("cancel", "a1", "--json").json["status"] == "cancelled"


def end_two() -> None:
    new_task()
    spawn(worker("prints", "its output"), "--wait", name="a1")
    spawn(worker("exits", 3), "--wait", name="a2", check=False)


@pytest.fixture
def frozen(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Task]:
    """Return a read-only task whose log lacks one of its workers' ends."""
    task = made_once(tmp_path_factory, end_two)
    log = task.path / "events.jsonl"
    log.write_bytes(b"".join(line for line in log.read_bytes().splitlines(True) if b"agent.failed" not in line))
    with read_only(root):
        yield task


@contextlib.contextmanager
def read_only(root: Path) -> Iterator[None]:
    mount("--bind", root, root)
    try:
        mount("-o", "remount,bind,ro", root)
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(root)], check=True)


def test_a_read_only_root_can_be_read_and_is_healed_in_memory(frozen: Task) -> None:
    before = (frozen.path / "events.jsonl").read_bytes()
    assert statuses() == {"a1": "completed", "a2": "failed"}
    assert run("show", "a2", "--json").json["reason"] == "exit_code"
    assert run("wait", "a1", "a2", check=False).code == 7
    assert run("wait-all", "--json", check=False).json[1]["exitCode"] == 3
    assert run("result", "a1").out == "its output\n"
    assert run("logs", "a1").out == "its output\n"
    assert run("tasks", "--json").json[0]["workers"] == 2
    assert run("events").code == 0
    assert run("interact", "list").code == 0
    assert run("doctor", check=False).code in (0, 1)
    assert (frozen.path / "events.jsonl").read_bytes() == before


@pytest.mark.slow
def test_what_would_write_to_a_read_only_root_is_refused_clearly(frozen: Task) -> None:
    for args in (["spawn", "--", "true"], ["spawn", "--queue", "--", "true"], ["new", "x"], ["use", "t1"],
                 ["send", "a1", "x"], ["wait-any"], ["doctor", "--fix"]):  # fmt: skip
        refused = run(*args, check=False)
        assert "bug" not in refused.err, str(refused)
        assert refused.code == 1 or args[0] == "doctor", str(refused)
        assert args[0] == "doctor" or "ead-only" in refused.err or "has ended" in refused.err, str(refused)
    assert statuses() == {"a1": "completed", "a2": "failed"}


@pytest.mark.slow
def test_a_cancel_on_a_read_only_root_stops_the_worker_and_is_written_later(root: Path) -> None:
    task = new_task()
    spawn(worker("sleeps", 100), name="a1")
    wait_until(task.roster, accept=lambda rows: rows == {"a1": "active"}, what="the shim to be at rest")
    with read_only(root):
        told = run("cancel", "a1", "--json").json
        assert (told["cancelled"], told["status"]) == (True, "cancelled")
        assert "ead-only" in told["note"]
    task.ended("a1")
    assert statuses() == {"a1": "cancelled"}


def test_a_cancel_on_a_read_only_root_tells_of_the_ended_and_changes_nothing(frozen: Task) -> None:
    told = run("cancel", "a1", "a2", "--json", check=False)
    assert "bug" not in told.err, str(told)
    assert statuses() == {"a1": "completed", "a2": "failed"}


def test_on_a_read_only_disk_one_process_at_a_time_holds_a_life(root: Path) -> None:
    root.mkdir(exist_ok=True)
    lock = root / "shim.json"
    lock.touch()
    with read_only(root):
        held = locks.hold_alive(lock)
        assert held is not None
        assert locks.is_alive_held(lock)
        assert locks.hold_alive(lock) is None
        os.close(held)
        assert not locks.is_alive_held(lock)
    writer = locks.hold_alive(lock)
    assert writer is not None
    with read_only(root):
        assert locks.hold_alive(lock) is None
    os.close(writer)


def test_a_lock_that_a_read_only_disk_does_not_let_be_made_says_so(root: Path) -> None:
    """Whoever may write nothing but an outbox knows by this error that it is in a sandbox."""
    root.mkdir(exist_ok=True)
    with read_only(root), pytest.raises(OSError, match="Read-only") as caught:
        locks.hold_alive(root / "new.lock")
    assert caught.value.errno == errno.EROFS
