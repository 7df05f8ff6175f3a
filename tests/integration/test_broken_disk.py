"""At stake: what stops a worker needs nothing that may be broken: a full, read-only or failing disk, a descriptor."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests import faults as layer
from tests.faults import Faults
from tests.integration.test_disk import Disk, disk  # noqa: F401 - a fixture
from tests.steps import Task, new_task, spawn, statuses
from tests.support import PROGRAM, alike, is_alive, run, start, wait_until, worker

#: How a broken disk answers, and to which calls.
BROKEN = {
    "ENOSPC": (layer.TAKES_ROOM, errno.ENOSPC),
    "EDQUOT": (layer.TAKES_ROOM, errno.EDQUOT),
    "EROFS": (layer.CHANGES, errno.EROFS),
    "EIO": (layer.CHANGES, errno.EIO),
    "EFBIG": (layer.WRITE, errno.EFBIG),
    "ESTALE": (layer.CHANGES, errno.ESTALE),
}
EACH = pytest.mark.parametrize("broken", ["ENOSPC", "EROFS", *alike("EDQUOT", "EIO", "EFBIG", "ESTALE")])


def pid_of(task: Task, name: str) -> int:
    return int(json.loads((task.agent(name) / "worker.json").read_bytes())["pid"])


def status_of(pid: int) -> str:
    return str(psutil.Process(pid).status())


def rested(task: Task, **roster: str) -> None:
    wait_until(task.roster, accept=lambda rows: rows == roster, what="the shims to be at rest")


@EACH
def test_a_cancel_on_a_broken_disk_stops_the_worker_and_its_end_is_written_later(
    root: Path, faulty: Faults, broken: str
) -> None:
    task = new_task()
    spawn(worker("sleeps", 100), name="a")
    rested(task, a="active")
    pid = pid_of(task, "a")
    faulty.fail(root, *BROKEN[broken])
    told = run("cancel", "a", "--json").json
    assert not is_alive(pid)
    assert (told["cancelled"], told["status"]) == (True, "cancelled")
    assert "kept in memory" in told["note"]
    assert task.exit("a") is None
    faulty.mend()
    task.ended("a")
    assert (task.exit("a") or {})["status"] == "cancelled"
    assert (task.exit("a") or {})["by"] == "user"


@EACH
def test_a_pause_on_a_broken_disk_and_its_end_are_carried_out_and_told_later(
    root: Path, faulty: Faults, broken: str
) -> None:
    task = new_task()
    spawn(worker("sleeps", 100), name="a")
    rested(task, a="active")
    pid = pid_of(task, "a")
    faulty.fail(root, *BROKEN[broken])
    run("pause", "a")
    assert status_of(pid) == psutil.STATUS_STOPPED
    assert run("list", "--json").json[0]["paused"]
    run("unpause", "a")
    assert status_of(pid) != psutil.STATUS_STOPPED
    run("pause", "a")
    faulty.mend()
    task.has("agent.paused", "a")
    wait_until((task.agent("a") / "pause.json").exists, what="the request to be on disk")
    run("unpause", "a")
    run("cancel", "a", "--grace-seconds", "0")


@EACH
def test_a_queued_worker_that_is_cancelled_on_a_broken_disk_never_starts(
    root: Path, faulty: Faults, broken: str
) -> None:
    task = new_task(cap=1)
    ran = root.parent / "ran"
    spawn(worker("exits", 0, "--after-file", root.parent / "gate"), name="a")
    run("spawn", "--queue", "--name", "b", "--", "touch", ran)
    rested(task, a="active", b="pending")
    faulty.fail(root, *BROKEN[broken])
    assert run("cancel", "b", "--json").json["cancelled"]
    faulty.mend()
    (root.parent / "gate").touch()
    run("wait-all", check=False)
    assert statuses() == {"a": "completed", "b": "cancelled"}
    assert not ran.exists()


def test_a_shim_that_is_killed_while_it_holds_an_end_loses_nothing_of_it(root: Path, faulty: Faults) -> None:
    task = new_task()
    gate = root.parent / "gate"
    spawn(worker("exits", 3, "--after-file", gate), name="a")
    rested(task, a="active")
    shim = int(json.loads((task.agent("a") / "shim.json").read_bytes())["pid"])
    faulty.fail(root, *BROKEN["ENOSPC"])
    gate.touch()
    wait_until(lambda: "held" in run("list").out, what="the end to be held")
    psutil.Process(shim).kill()
    wait_until(lambda: not is_alive(shim), what="its shim to be gone")
    faulty.mend()
    assert statuses() == {"a": "failed"}
    ended = task.exit("a") or {}
    assert (ended["status"], ended["reason"], ended["exitCode"]) == ("failed", "exit_code", 3)


def test_an_end_that_a_full_disk_refuses_is_named_everywhere_and_kept(root: Path, faulty: Faults) -> None:
    task = new_task()
    gate = root.parent / "gate"
    spawn(worker("exits", 3, "--after-file", gate), name="a")
    rested(task, a="active")
    waiting = start("wait", "a")
    faulty.fail(root, *BROKEN["ENOSPC"])
    gate.touch()
    wait_until(lambda: "held" in run("list").out, what="the end to be held")
    why = run("why", "a").out
    assert "It has ended (status failed, reason exit_code, exitCode 3)" in why
    assert "the disk is full" in why
    doctor = run("doctor", check=False)
    assert doctor.code == 1
    assert "error: it has ended, and its end waits in memory: the disk is full" in doctor.out
    assert "kill" not in doctor.out
    assert waiting.stderr is not None
    assert "t1/a has ended, and its end waits in memory: the disk is full" in waiting.stderr.readline()
    faulty.mend()
    assert waiting.wait(timeout=30) == 7
    assert (task.exit("a") or {})["exitCode"] == 3


@pytest.mark.parametrize("errors", [errno.EMFILE, *alike(errno.ENFILE)])
def test_a_cancel_without_a_descriptor_for_a_new_file_is_carried_out(root: Path, faults: Faults, errors: int) -> None:
    task = new_task()
    spawn(worker("sleeps", 100), name="a")
    rested(task, a="active")
    for folder in (root, root.parent / "run"):
        faults.fail(folder, layer.CHANGE | layer.CREATE, errors)
    told = run("cancel", "a", "--json", env=faults.environ).json
    assert (told["cancelled"], told["status"]) == (True, "cancelled")
    assert (task.exit("a") or {})["status"] == "cancelled"


def test_stop_commands_work_where_files_may_have_one_block(root: Path) -> None:
    task = new_task()
    for name in ("a", "b"):
        spawn(worker("sleeps", 100), name=name)
    rested(task, a="active", b="active")

    def bounded(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", 'ulimit -f 1; exec "$@"', "sh", *PROGRAM, *args],
            check=False, capture_output=True, text=True, timeout=30,
        )  # fmt: skip

    for args in (("pause", "a"), ("unpause", "a"), ("cancel", "a"), ("cancel", "--all", "--grace-seconds", "0")):
        done = bounded(*args)
        assert done.returncode == 0, done
    assert statuses() == {"a": "cancelled", "b": "cancelled"}


_RUNAWAY = """
import sys
with open(sys.argv[1], "ab", buffering=0) as junk:
    while True:
        try:
            junk.write(bytes(65536))
        except OSError:
            pass
"""


@pytest.mark.parametrize("grace", [(), *alike((("--grace-seconds", "0"),))])
def test_a_runaway_that_refills_its_disk_is_paused_and_cancelled(disk: Disk, grace: tuple[str, ...]) -> None:  # noqa: F811
    task = new_task()
    spawn([sys.executable, "-c", _RUNAWAY, str(disk.path / "junk")], "--grace-seconds", "1", name="a")
    pid = pid_of(task, "a")
    wait_until(lambda: disk.is_full, what="the disk to be full")
    run("pause", "a")
    assert status_of(pid) == psutil.STATUS_STOPPED
    run("unpause", "a")
    assert run("cancel", "a", *grace, "--json").json["cancelled"]
    assert not is_alive(pid)
    (disk.path / "junk").unlink()
    task.ended("a")
    assert (task.exit("a") or {})["status"] == "cancelled"
