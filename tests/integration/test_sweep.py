"""At stake: when an end is reported, nothing of the worker's process tree is alive, however it tried to escape."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.life import Known, is_settled, kill_shims, leader_of, lives, living, members, passes, read, says_ready
from tests.steps import new_task, row, spawn, statuses
from tests.support import alike, run, start, text_in, wait_until, worker

FREEZER = Path("/sys/fs/cgroup/freezer")


def test_nothing_of_a_stubborn_tree_is_alive_once_it_is_cancelled(root: Path, tmp_path: Path) -> None:
    """All ignore INT and TERM; one has its own session, one is a daemon, a grandchild holds stdout."""
    task = new_task(grace=0.15)
    pids = tmp_path / "pids"
    spawn(worker("stubborn", pids), name="a")
    tree = members(pids)
    assert set(tree) == {"leader", "child", "grandchild", "setsid", "daemon"}
    assert len(living(tree.values())) == 5
    # Checked as soon as the event is there, not when a command returns.
    cancelling = start("cancel", "a")
    task.ended("a")
    assert living(tree.values()) == []
    assert cancelling.wait(timeout=20) == 0
    decision = is_settled(task, "a")
    assert decision["status"] == "cancelled"
    assert {one["pid"] for one in decision["swept"]} == {process.pid for process in tree.values()}


@pytest.mark.slow
def test_a_tree_of_fifty_is_gone_when_its_cancel_is_told(root: Path, tmp_path: Path) -> None:
    task = new_task(grace=0.1)
    pids = tmp_path / "pids"
    spawn(worker("tree", 50, pids), name="a")
    wait_until(pids.exists, what="the tree")
    tree = [Known(pid, start_of(pid)) for pid in read(pids)]
    run("cancel", "a")
    assert len(tree) == 50
    assert living(tree) == []
    assert is_settled(task, "a")["status"] == "cancelled"


def start_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19])


@pytest.mark.parametrize("is_guarded", [True, *alike(False)], ids=["with a shim", "without"])
def test_who_lives_on_from_process_to_process_is_gone_when_its_end_is_told(
    root: Path, tmp_path: Path, is_guarded: bool
) -> None:
    """During any look, its last process may end, and the next one may not have existed when the look began."""
    task = new_task(grace=0.2)
    hops = tmp_path / "hops"
    if is_guarded:
        spawn(worker("hops", hops), name="a")
    else:
        spawn(["sh", "-c", 'kill -9 $PPID; exec "$@"', "sh", *worker("hops", hops)], name="a")
        wait_until(hops.exists, what="it to live without a shim")
        run("cancel", "a")
    task.ended("a")
    size = hops.stat().st_size
    passes(0.3)
    assert hops.stat().st_size == size


@pytest.mark.parametrize("deaf", [["--term"], *alike([])], ids=["ends-on-kill", "ends-on-term"])
def test_a_child_that_outlives_its_leader_is_ended_too(root: Path, tmp_path: Path, deaf: list[str]) -> None:
    task = new_task(grace=0.2)
    pids = tmp_path / "pids"
    spawn(worker("leaves_child_on_int", pids, *deaf), name="a")
    says_ready(task, "a")
    tree = members(pids)
    assert run("cancel", "a", "--json").json["cancelled"] is True
    assert living(tree.values()) == []
    decision = is_settled(task, "a")
    assert decision["exitCode"] == 130
    assert [one["pid"] for one in decision["swept"]] == [tree["child"].pid]


@pytest.mark.parametrize("kind", [["--stubborn"], *alike([], ["--code", "3"])], ids=["stubborn", "meek", "failed"])
def test_what_is_left_after_a_normal_end_is_swept_and_listed(root: Path, tmp_path: Path, kind: list[str]) -> None:
    task = new_task(grace=0.2)
    pids = tmp_path / "pids"
    spawn(worker("leaves_daemon", pids, *kind), name="a")
    run("wait", "a", check=False)
    daemon = read(pids)["daemon"]
    assert not psutil.pid_exists(daemon)
    decision = is_settled(task, "a")
    assert [one["pid"] for one in decision["swept"]] == [daemon]
    assert "leaves_daemon.py" in decision["swept"][0]["command"]
    assert (decision["status"], decision["exitCode"]) == (("failed", 3) if "--code" in kind else ("completed", 0))


def test_what_leaves_by_itself_is_not_listed_as_swept(root: Path) -> None:
    """It may be the shim of another worker: nothing tells any more, as its memory is gone."""
    task = new_task()
    spawn(worker("leaves_slow_exit"), name="a")
    run("wait", "a")
    decision = is_settled(task, "a")
    assert decision["status"] == "completed"
    assert "swept" not in decision


@pytest.mark.skipif(os.uname().machine not in ("x86_64", "aarch64"), reason="the worker knows no number for exit(2)")
def test_a_process_whose_first_thread_has_ended_is_swept_too(root: Path, tmp_path: Path) -> None:
    task = new_task(grace=0.2)
    pids = tmp_path / "pids"
    spawn(worker("leaves_second_thread", pids), name="a")
    run("wait", "a")
    child = read(pids)["child"]
    assert not psutil.pid_exists(child)
    assert [one["pid"] for one in is_settled(task, "a")["swept"]] == [child]


def test_keep_children_lets_them_live_and_lists_them(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    pids = tmp_path / "pids"
    spawn(worker("leaves_daemon", pids), "--keep-children", name="a")
    run("wait", "a")
    daemon = psutil.Process(read(pids)["daemon"])
    decision = is_settled(task, "a")
    assert [one["pid"] for one in decision["kept"]] == [daemon.pid]
    assert "swept" not in decision
    # Its slot is free, and the sweep of the next worker does not find the daemon.
    wait_until(
        lambda: spawn(worker("exits", 0), name="b", check=False).code, accept=lambda code: code == 0, what="a slot"
    )
    run("wait", "b")
    assert daemon.is_running()
    strays = [one for one in run("doctor", "--json", check=False).json if "alive" in one["what"]]
    assert [str(daemon.pid) in one["what"] for one in strays] == [True]
    daemon.kill()


@pytest.mark.slow
def test_keep_children_does_not_keep_those_of_a_cancelled_worker(root: Path, tmp_path: Path) -> None:
    task = new_task(grace=0.2)
    pids = tmp_path / "pids"
    spawn(worker("leaves_child_on_int", pids), "--keep-children", name="a")
    tree = members(pids)
    run("cancel", "a")
    assert living(tree.values()) == []
    assert is_settled(task, "a")["status"] == "cancelled"


def test_a_tree_that_forks_without_end_is_gone_when_its_cancel_is_told(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn(worker("forks"), "--grace-seconds", "0.3", name="a")
    says_ready(task, "a")
    cookie = read(task.agent("a") / "worker.json")["cookie"].encode()
    wait_until(lambda: len(carriers(cookie)), accept=lambda count: count > 20, what="the tree to grow")
    run("cancel", "a")
    assert carriers(cookie) == []
    assert is_settled(task, "a")["status"] == "cancelled"


def carriers(cookie: bytes) -> list[int]:
    """Return the live processes that have a worker's cookie."""
    found = []
    for pid in psutil.pids():
        try:
            if cookie in Path(f"/proc/{pid}/environ").read_bytes():
                found.append(pid)
        except OSError:
            continue
    return found


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    """Freeze a process so that SIGKILL stays pending, as with a dead network file system."""
    group = FREEZER / f"agentctl-{uuid.uuid4().hex[:12]}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no freezer available: {error}")
    state = group / "freezer.state"
    try:
        (group / "cgroup.procs").write_text(str(pid), encoding="ascii")
        state.write_text("FROZEN", encoding="ascii")
        wait_until(lambda: text_in(state), accept=lambda text: text == "FROZEN\n", what="the freeze")
        yield
    finally:
        state.write_text("THAWED", encoding="ascii")
        wait_until(lambda: text_in(group / "cgroup.procs"), accept=lambda text: not text, what="the end")
        group.rmdir()


@pytest.mark.skipif(os.geteuid() != 0 or not FREEZER.is_dir(), reason="needs root and the freezer of cgroup v1")
@pytest.mark.parametrize("supervised", [True, *alike(False)])
@pytest.mark.slow
def test_survivors_of_sigkill_are_listed_and_keep_the_slot(root: Path, supervised: bool) -> None:
    task = new_task(cap=1, grace=0.1)
    spawn(worker("ignores_term", "--int"), name="a")
    says_ready(task, "a")
    leader = leader_of(task, "a")
    if not supervised:
        kill_shims(task, "a")
    with frozen(leader.pid):
        told = run("cancel", "a", "--json", check=False)
        assert told.code == 1
        assert told.json["cancelled"] is False
        assert [one["pid"] for one in told.json["survivors"]] == [leader.pid]
        assert "ignores_term.py" in told.json["survivors"][0]["command"]
        again = run("cancel", "a", check=False)
        assert (again.code, f"pid {leader.pid}: " in again.out) == (1, True)
        seen = row("a")
        assert (seen["status"], [one["pid"] for one in seen["survivors"]]) == ("running", [leader.pid])
        assert task.exit("a") is None
        assert lives(leader)
        assert spawn(["true"], name="b", check=False).code == 5
        # Longer than a second escalation would need to report the survivors again.
        assert run("wait-any", "--timeout-seconds", "7", check=False).code == 4
        assert [event["type"] for event in task.events()].count("agent.cancel_failed") == 1
    task.ended("a")
    assert is_settled(task, "a")["status"] == "cancelled"
    assert not lives(leader)
    wait_until(lambda: spawn(["true"], name="b", check=False).code, accept=lambda code: code == 0, what="the slot")
    run("wait", "b")
    assert statuses() == {"a": "cancelled", "b": "completed"}
