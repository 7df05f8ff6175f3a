"""At stake: what stops a worker needs nothing that may be broken: a full, read-only or failing disk, a descriptor."""

from __future__ import annotations

import errno
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests import faults as layer
from tests import support
from tests.faults import Faults
from tests.integration.test_disk import Disk, disk, mount  # noqa: F401 - one is a fixture
from tests.life import is_settled, set_config
from tests.steps import Task, kill, new_task, spawn, statuses
from tests.support import PROGRAM, alike, is_alive, run, start, wait_for_text, wait_until, worker

#: How a broken disk answers, and to which calls.
BROKEN = {
    "ENOSPC": (layer.TAKES_ROOM, errno.ENOSPC),
    "EDQUOT": (layer.TAKES_ROOM, errno.EDQUOT),
    "EROFS": (layer.CHANGES, errno.EROFS),
    "EIO": (layer.CHANGES, errno.EIO),
    "EFBIG": (layer.WRITE, errno.EFBIG),
    "ESTALE": (layer.CHANGES, errno.ESTALE),
}
EACH = pytest.mark.parametrize("broken", ["ENOSPC", *alike("EROFS", "EDQUOT", "EIO", "EFBIG", "ESTALE")])


def pid_of(task: Task, name: str) -> int:
    return int(json.loads((task.agent(name) / "worker.json").read_bytes())["pid"])


def shim_of(task: Task, name: str) -> int:
    return int(json.loads((task.agent(name) / "shim.json").read_bytes())["pid"])


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


@EACH
def test_the_undertaker_on_a_broken_disk_stops_the_tree_and_the_end_is_written_later(
    root: Path, faulty: Faults, tmp_path: Path, broken: str
) -> None:
    task, pids = new_task(), tmp_path / "pids"
    spawn(worker("stubborn", pids), "--grace-seconds", "0.2", name="a")
    tree = wait_for_text(pids)
    rested(task, a="active")
    kill(shim_of(task, "a"))
    faulty.fail(root, *BROKEN[broken])
    told = run("cancel", "a", "--json").json
    assert (told["cancelled"], told["status"]) == (True, "cancelled")
    assert not [pid for pid in json.loads(tree).values() if is_alive(pid)]
    assert task.exit("a") is None
    assert "its end is held" in run("list").out
    faulty.mend()
    task.ended("a")
    assert (task.exit("a") or {})["status"] == "cancelled"


#: The reason, and what brings it about.
LIMITS: dict[str, tuple[str, list[int]]] = {"timed_out": ("sleeps", [100]), "output_limit": ("floods", [])}


@EACH
@pytest.mark.parametrize("reason", ["output_limit", *alike("timed_out")])
def test_a_limit_is_kept_on_a_broken_disk_and_told_later(
    root: Path, faulty: Faults, tmp_path: Path, broken: str, reason: str
) -> None:
    task = new_task()
    set_config(task, maxOutputBytes=100_000, graceSeconds=0.2)
    gate = tmp_path / "gate"
    program, args = LIMITS[reason]
    waits = f'while ! [ -e {shlex.quote(str(gate))} ]; do sleep 0.05; done; exec "$@"'
    limit = ["--timeout-seconds", "3"] if reason == "timed_out" else []
    spawn(["sh", "-c", waits, "sh", *worker(program, *args)], *limit, name="a")
    rested(task, a="active")
    pid = pid_of(task, "a")
    faulty.fail(root, *BROKEN[broken])
    gate.touch()
    wait_until(lambda: not is_alive(pid), what="the limit to stop it")
    wait_until(lambda: "held" in run("list").out, what="the end to be held")
    assert task.exit("a") is None
    assert f"reason {reason}" in run("why", "a").out
    faulty.mend()
    task.ended("a")
    assert (task.exit("a") or {})["reason"] == reason


def test_a_shim_that_is_killed_while_it_holds_an_end_loses_nothing_of_it(root: Path, faulty: Faults) -> None:
    task = new_task()
    gate = root.parent / "gate"
    spawn(worker("exits", 3, "--after-file", gate), name="a")
    rested(task, a="active")
    shim = shim_of(task, "a")
    faulty.fail(root, *BROKEN["ENOSPC"])
    gate.touch()
    wait_until(lambda: "held" in run("list").out, what="the end to be held")
    kill(shim)
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
def test_stop_commands_without_a_descriptor_for_a_new_file_are_carried_out(
    root: Path, faults: Faults, errors: int
) -> None:
    task = new_task()
    spawn(worker("sleeps", 100), name="a")
    rested(task, a="active")
    pid = pid_of(task, "a")
    for folder in (root, root.parent / "run"):
        faults.fail(folder, layer.CHANGE | layer.CREATE, errors)
    run("pause", "a", env=faults.environ)
    assert status_of(pid) == psutil.STATUS_STOPPED
    run("unpause", "a", env=faults.environ)
    assert status_of(pid) != psutil.STATUS_STOPPED
    told = run("cancel", "a", "--json", env=faults.environ).json
    assert (told["cancelled"], told["status"]) == (True, "cancelled")
    assert (task.exit("a") or {})["status"] == "cancelled"


@pytest.mark.slow
def test_stop_commands_work_with_few_descriptors(root: Path) -> None:
    """With so few that a command can just load itself: each stops its worker, or says what is missing."""
    task = new_task()
    spawn(worker("sleeps", 100), name="a")
    rested(task, a="active")
    pid = pid_of(task, "a")
    outcomes = {}
    for many in (5, 6, 7, 8, 10, 14):
        for command in ("pause", "unpause"):
            done = limited(f"ulimit -n {many}", command, "a")
            assert "bug" not in done.stderr, done
            is_stopped = status_of(pid) == psutil.STATUS_STOPPED
            assert done.returncode != 0 or is_stopped == (command == "pause"), done
            outcomes[many, command] = done
    assert [code.returncode for (many, _), code in outcomes.items() if many >= FEW] == [0] * 6, outcomes
    assert limited(f"ulimit -n {FEW}", "cancel", "a").returncode == 0
    assert statuses() == {"a": "cancelled"}


#: Standard streams, and what a command has open at once: a lock, a folder, a file, and a watch.
FEW = 8


def limited(limit: str, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", f'{limit}; exec "$@"', "sh", *PROGRAM, *args],
        check=False, capture_output=True, text=True, timeout=30,
    )  # fmt: skip


def test_stop_commands_work_where_files_may_have_one_block(root: Path) -> None:
    task = new_task()
    for name in ("a", "b"):
        spawn(worker("sleeps", 100), name=name)
    rested(task, a="active", b="active")

    for args in (("pause", "a"), ("unpause", "a"), ("cancel", "a"), ("cancel", "--all", "--grace-seconds", "0")):
        done = limited("ulimit -f 1", *args)
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


@pytest.mark.parametrize(
    ("grace", "size"), [((), "1m"), *alike((("--grace-seconds", "0"), "1m"), ((), "2m"), ((), "3m"))]
)
def test_a_runaway_that_refills_its_disk_is_paused_and_cancelled(
    disk: Disk,  # noqa: F811
    grace: tuple[str, ...],
    size: str,
) -> None:
    mount("-o", f"remount,size={size}", disk.path)
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


@pytest.fixture
def reserved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a disk with room that is kept for another user: to all commands here it is full while it has that room."""
    folder = tmp_path / "disk"
    folder.mkdir()
    script = "truncate -s 8M image; mkfs.ext4 -q -m 40 -F image; mount -o loop,resuid=12345,resgid=12345 image disk"
    made = subprocess.run(["sh", "-ec", script], cwd=tmp_path, check=False, capture_output=True, text=True)
    without_privilege = ("setpriv", "--bounding-set=-sys_resource", "--inh-caps=-sys_resource")
    if made.returncode != 0 or shutil.which("setpriv") is None:
        pytest.skip(f"there is no such disk here: {made.stderr.strip()}")
    monkeypatch.setenv("AGENTCTL_ROOT", str(folder / ".agentctl"))
    monkeypatch.setattr(support, "PROGRAM", (*without_privilege, *PROGRAM))
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.mark.slow
def test_a_runaway_on_a_disk_whose_room_is_kept_for_others_is_paused_and_cancelled(root: Path, reserved: Path) -> None:
    run("new", "A task", "--id", "t1", "--grace-seconds", "1")
    task, junk = Task(reserved / ".agentctl" / "tasks" / "t1"), reserved / "junk"
    spawn([sys.executable, "-c", _RUNAWAY, str(junk)], name="a")
    rested(task, a="active")
    pid = pid_of(task, "a")
    wait_until(lambda: junk.exists() and junk.stat().st_size, what="the disk to be full", accept=_Stands())
    assert os.statvfs(reserved).f_bfree * os.statvfs(reserved).f_frsize > 1 << 20, "there is room, for others"
    run("pause", "a")
    assert status_of(pid) == psutil.STATUS_STOPPED
    run("unpause", "a")
    assert run("cancel", "a", "--json").json["cancelled"]
    assert not is_alive(pid)
    junk.unlink()
    task.ended("a")
    assert (task.exit("a") or {})["status"] == "cancelled"


class _Stands:
    """Accepts a number once it has been the same for many looks."""

    def __init__(self) -> None:
        self._seen: list[int] = []

    def __call__(self, number: int) -> bool:
        self._seen.append(number)
        return number > 0 and self._seen[-20:] == [number] * 20


#: Where a script has a /dev/shm of its own, and what the person does there.
_MEMORY = """
mount -t tmpfs -o mode=1777 agentctl-test /dev/shm
$3
mount -o remount,ro /dev/shm
export HOME="$1" TMPDIR="$2" AGENTCTL_ROOT="$1/.agentctl"
unset XDG_RUNTIME_DIR
shift 3
"$@" new t --max-concurrent 1 --grace-seconds 1
"$@" spawn --name a -- sleep 100
"""


def in_own_memory(tmp_path: Path, script: str, before: str = "") -> subprocess.CompletedProcess[str]:
    """Run a script of a shell that has a /dev/shm which takes no files."""
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    temporary.mkdir()
    text = _MEMORY.replace("$3", before or ":", 1) + script
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-ec", text, "sh", home, temporary, "-", *PROGRAM],
        check=False, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip(f"no mounts here: {done.stderr.strip()}")
    return done


def test_where_memory_takes_no_files_they_wait_in_the_temporary_folder(tmp_path: Path) -> None:
    script = """
    "$@" spawn --queue --name b -- true
    "$@" pause a
    "$@" unpause a
    "$@" cancel --all
    "$@" list
    """
    done = in_own_memory(tmp_path, script)
    assert done.returncode == 0, done
    assert [line.split("\t")[:2] for line in done.stdout.splitlines()[-2:]] == [["a", "cancelled"], ["b", "cancelled"]]
    assert list((tmp_path / "temporary").glob("agentctl-*"))


def test_where_the_own_folder_in_memory_takes_no_files_any_more_the_next_step_helps(tmp_path: Path) -> None:
    own = f"mkdir -m 700 /dev/shm/agentctl-{os.getuid()}"
    script = """
    ! "$@" spawn --queue --name b -- true 2> "$HOME/told"
    eval "$(sed -n 's/^hint: //p' "$HOME/told")"
    "$@" spawn --queue --name b -- true
    "$@" cancel --all
    "$@" list
    """
    done = in_own_memory(tmp_path, script, own)
    assert done.returncode == 0, done
    assert "Read-only file system" in (tmp_path / "home" / "told").read_text()
    assert [line.split("\t")[:2] for line in done.stdout.splitlines()[-2:]] == [["a", "cancelled"], ["b", "cancelled"]]


def held_start(task: Task, faulty: Faults, *queued: str) -> None:
    """Let the disk refuse to flush the start of the first of these, which wait for the only slot."""
    spawn(worker("sleeps", 100), name="first")
    for name in queued:
        run("spawn", "--queue", "--name", name, "--", "touch", str(task.path / f"ran-{name}"))
    rested(task, first="active", **dict.fromkeys(queued, "pending"))
    faulty.fail(task.path / "events.jsonl", layer.SYNC, errno.EDQUOT)
    os.kill(pid_of(task, "first"), signal.SIGKILL)
    wait_until(lambda: run("list").out, accept=lambda told: "its start is held" in told, what="the start to be held")


def test_a_start_that_a_disk_does_not_flush_is_held_and_costs_no_other_worker(root: Path, faulty: Faults) -> None:
    task = new_task(cap=1)
    held_start(task, faulty, "a", "b", "c")
    assert statuses() == {"first": "failed", "a": "running", "b": "queued", "c": "queued"}
    assert "Its program has not begun" in run("why", "a").out
    assert "the disk is full: cannot flush" in run("why", "a").out
    assert not list(task.path.glob("ran-*"))
    faulty.mend()
    run("wait-all", "--timeout-seconds", "30", check=False)  # One has failed.
    assert statuses() == {"first": "failed", **dict.fromkeys("abc", "completed")}
    assert len(list(task.path.glob("ran-*"))) == 3
    assert [event["agentInstance"] for event in task.events("agent.started")] == ["first", "a", "b", "c"]
    assert run("doctor", check=False).code == 0


@pytest.mark.slow
def test_a_start_that_is_held_can_be_cancelled_and_never_begins(root: Path, faulty: Faults) -> None:
    task = new_task(cap=1)
    held_start(task, faulty, "a")
    run("cancel", "a")
    faulty.mend()
    assert is_settled(task, "a")["status"] == "cancelled"
    assert not list(task.path.glob("ran-*"))
    assert task.tickets() == []
    assert run("doctor", check=False).code == 0


@pytest.mark.slow
def test_a_question_that_a_disk_does_not_flush_is_asked_once(root: Path, faulty: Faults) -> None:
    task = new_task()
    go, answer = root.parent / "go", root.parent / "answer"
    asks = f"until [ -e {go} ]; do sleep 0.02; done; {shlex.join(support.PROGRAM)} interact ask 'Go on?' > {answer}"
    spawn(["sh", "-c", asks], name="a")
    rested(task, a="active")
    faulty.fail(task.path / "events.jsonl", layer.SYNC, errno.EIO)
    go.touch()
    wait_until(statuses, accept=lambda told: told == {"a": "blocked"}, what="its question")
    faulty.mend()
    run("answer", "a", "--id", "q1", "yes")
    run("wait", "a")
    assert is_settled(task, "a")["status"] == "completed"
    assert answer.read_text() == "yes\n"
    assert [event["payload"]["id"] for event in task.events("interaction.requested")] == ["q1"]


@pytest.mark.slow
def test_a_start_that_is_held_in_a_task_that_is_removed_never_begins(root: Path, faulty: Faults) -> None:
    task = new_task(cap=1)
    held_start(task, faulty, "a")
    shim = shim_of(task, "a")
    away = root.parent / "away"
    task.path.rename(away)
    wait_until(lambda: is_alive(shim), accept=lambda alive: not alive, what="its shim to be gone")
    assert not list(away.glob("ran-*"))


@pytest.mark.parametrize(
    ("place", "calls"), [("queue", layer.RENAME), *alike(("queue", layer.SYNC), ("events.jsonl", layer.SYNC))]
)
@pytest.mark.parametrize("batch", [False, *alike(True)])
def test_a_spawn_that_fails_when_the_log_has_its_workers_already_ends_them(
    root: Path, faulty: Faults, place: str, calls: int, batch: bool
) -> None:
    task = new_task()
    ran = root.parent / "ran"
    names = ["a", "b"] if batch else ["a"]
    lines = "".join(json.dumps({"name": name, "argv": ["touch", str(ran)]}) + "\n" for name in names)
    argv = ["--batch", "-"] if batch else ["--queue", "--name", "a", "--", "touch", str(ran)]
    fault = faulty.fail(task.path / place, calls, errno.EIO)
    refused = run("spawn", *argv, stdin=lines if batch else None, check=False)
    assert (refused.code, faulty.hits(fault) > 0) == (1, True), refused
    faulty.mend()
    for name in names:
        ended = is_settled(task, name)
        assert (ended["status"], ended["reason"]) == ("failed", "not_started")
        assert "its spawn failed: " in ended["message"]
        assert run("show", name).out
    assert not ran.exists()
    assert task.tickets() == []
    assert run("doctor", check=False).code == 0
