"""At stake: a cancel does the right thing in each condition of a worker, and says what it did."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.life import (
    is_settled,
    kill_shims,
    known,
    leader_of,
    lives,
    living,
    members,
    says_ready,
    stands,
)
from tests.steps import new_task, spawn, statuses
from tests.support import PROGRAM, alike, environment, run, start, wait_for_text, wait_until, worker

#: Writes a byte to a file for each SIGINT that it gets, and stays alive.
COUNTS = """
import os, signal, sys
signal.alarm(60)
def note(*_): os.write(fd, b"i")
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
signal.signal(signal.SIGINT, note)
if len(sys.argv) > 2 and os.fork() == 0: signal.alarm(60)
print("ready", flush=True)
while True: signal.pause()
"""


KINDS = ("agent.cancelled", "agent.cancel_requested")


@pytest.mark.slow
def test_a_queued_worker_is_cancelled_without_ever_running(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    spawn(worker("waits_for_file", tmp_path / "gate"), name="a")
    spawn(["touch", str(tmp_path / "ran")], "--queue", name="b")
    assert run("cancel", "b", "--json").json == {
        "agentInstance": "b", "cancelled": True, "status": "cancelled", "survivors": [],
    }  # fmt: skip
    assert task.tickets() == []
    assert not any((tmp_path / "run" / "agentctl").iterdir())
    (tmp_path / "gate").touch()
    run("wait", "a")
    assert is_settled(task, "b")["status"] == "cancelled"
    assert task.events("agent.started", of="b") == []
    assert not (tmp_path / "ran").exists()


def test_a_worker_that_is_being_started_is_cancelled(root: Path) -> None:
    """Its shim is held between the fork and the gate."""
    task = new_task()
    starting = start(
        "spawn", "--name", "b", "--", *worker("sleeps", 60), env={"AGENTCTL_FAILPOINT": "shim.after-fork:stop"}
    )
    wait_until((task.agent("b") / "control").exists, what="the shim to take b")
    shim = task.shim_of("b")
    stands(shim)
    assert run("cancel", "b", "--no-wait", "--json").json["status"] != "cancelled"
    assert task.exit("b") is None
    os.kill(shim, signal.SIGCONT)
    task.ended("b")
    starting.communicate()
    decision = is_settled(task, "b")
    assert decision["status"] == "cancelled"
    assert decision["durationSeconds"] < 30
    assert task.tickets() == []


def test_a_running_worker_is_interrupted_once_and_only_its_group(root: Path, tmp_path: Path) -> None:
    """One SIGINT for each process of the group: some programs take a second one as "force quit"."""
    task = new_task(grace=30)
    notes = tmp_path / "notes"
    spawn([sys.executable, "-c", COUNTS, str(notes), "with a child"], name="a")
    says_ready(task, "a")
    leader = leader_of(task, "a")
    first = start("cancel", "a")
    wait_until(lambda: notes.stat().st_size, accept=lambda size: size == 2, what="both to be interrupted")
    run("cancel", "a", "--no-wait")
    assert "a cancelled" in run("cancel", "a", "--grace-seconds", "0.05").out
    assert first.wait(timeout=20) == 0
    assert not lives(leader)
    assert notes.read_bytes() == b"ii"
    assert is_settled(task, "a")["signal"] == "SIGTERM"


@pytest.mark.slow
def test_a_second_and_shorter_cancel_hurries_the_first(root: Path) -> None:
    task = new_task()
    spawn(worker("ignores_term", "--int"), "--grace-seconds", "600", name="a")
    says_ready(task, "a")
    first = start("cancel", "a")
    task.has("agent.cancel_requested", "a")
    run("cancel", "a", "--grace-seconds", "0.05", timeout=20)
    assert first.wait(timeout=20) == 0
    assert is_settled(task, "a")["signal"] == "SIGKILL"


@pytest.mark.parametrize("stopped_by", ["signal", *alike("pause")])
def test_a_stopped_worker_is_continued_so_that_it_can_end(root: Path, stopped_by: str) -> None:
    task = new_task(grace=20)
    spawn(worker("sleeps", 60), name="a")
    says_ready(task, "a")
    leader = leader_of(task, "a")
    if stopped_by == "pause":
        run("pause", "a")
    else:
        os.kill(leader.pid, signal.SIGSTOP)
    stands(leader.pid)
    assert run("cancel", "a", "--json").json["cancelled"] is True  # within one grace period, not by SIGKILL
    assert is_settled(task, "a")["exitCode"] == 130
    assert not lives(leader)


def test_a_blocked_worker_is_cancelled_with_its_asker(root: Path) -> None:
    task = new_task(grace=5)
    spawn(worker("asks", "--kind", "confirm", "Go on?"), name="a")
    task.has("agent.blocked", "a")
    assert run("cancel", "a", "--json").json["status"] == "cancelled"
    assert is_settled(task, "a")["status"] == "cancelled"
    assert run("interact", "list", "--json").json == []
    late = run("interact", "respond", "a", "--id", "q1", "yes", check=False)
    assert late.code != 0
    assert "error:" in late.err


def test_cancelling_what_has_ended_changes_nothing_and_says_so(root: Path) -> None:
    task = new_task()
    spawn(worker("exits", 3), name="a")
    run("wait", "a", check=False)
    before = (task.events(), task.exit("a"))
    told = run("cancel", "a")
    assert told.out == "a had failed before; nothing changed\n"
    assert run("cancel", "a", "--json").json["cancelled"] is False
    assert run("cancel", "--all").out == ""
    assert (task.events(), task.exit("a")) == before
    assert not (task.agent("a") / "cancel.json").exists()


@pytest.mark.slow
def test_cancelling_a_lost_worker_says_that_it_is_lost(root: Path) -> None:
    task = new_task()
    spawn(worker("sleeps", 60), name="a")
    leader = leader_of(task, "a")
    kill_shims(task, "a")
    os.kill(leader.pid, signal.SIGKILL)
    wait_until(lambda: lives(leader), accept=lambda alive: not alive, what="it to die")
    told = run("cancel", "a", "--json").json
    assert (told["cancelled"], told["status"]) == (False, "failed")
    assert is_settled(task, "a")["reason"] == "lost"


@pytest.mark.slow
def test_ctrl_c_on_cancel_leaves_the_escalation_running(root: Path, tmp_path: Path) -> None:
    task = new_task(grace=1)
    pids = tmp_path / "pids"
    spawn(worker("stubborn", pids), name="a")
    tree = members(pids)
    argv = [*PROGRAM, "cancel", "a"]
    cancelling = subprocess.Popen(argv, env=environment(), process_group=0, stderr=subprocess.PIPE, text=True)
    task.has("agent.cancel_requested", "a")
    os.killpg(cancelling.pid, signal.SIGINT)
    _, err = cancelling.communicate(timeout=20)
    assert cancelling.returncode == 130
    assert "the cancel goes on without this command" in err
    assert len(living(tree.values())) == len(tree)
    task.ended("a")
    assert living(tree.values()) == []
    assert is_settled(task, "a")["status"] == "cancelled"


def test_cancel_no_wait_returns_with_the_request_on_disk(root: Path) -> None:
    task = new_task(grace=0.1)
    spawn(worker("ignores_term", "--int"), name="a")
    says_ready(task, "a")
    run("cancel", "a", "--no-wait")
    assert (task.agent("a") / "cancel.json").exists()
    task.ended("a")
    assert is_settled(task, "a")["by"] == "user"


def test_cancel_all_takes_queued_running_and_stopped_alike(root: Path) -> None:
    task = new_task(cap=2)
    for name in ("a", "b", "c", "d"):
        spawn(worker("sleeps", 60), "--queue", name=name)
    says_ready(task, "a")
    says_ready(task, "b")
    os.kill(leader_of(task, "b").pid, signal.SIGSTOP)
    leaders = [known(leader_of(task, name).pid) for name in ("a", "b")]
    told = run("cancel", "--all", "--json").json
    assert {one["agentInstance"]: one["status"] for one in told} == dict.fromkeys("abcd", "cancelled")
    assert living(leaders) == []
    assert statuses() == dict.fromkeys("abcd", "cancelled")
    assert task.events("agent.started", of="d") == []
    # The queued workers first: the end of a running one would start them.
    order = [(event["type"], event["agentInstance"]) for event in task.events(*KINDS)]
    assert max(order.index(("agent.cancelled", name)) for name in "cd") < order.index(("agent.cancel_requested", "a"))


def test_cancel_of_nobody_is_told_by_exit_code(root: Path) -> None:
    new_task()
    assert run("cancel", "nobody", check=False).code == 3
    assert run("cancel", "../x", check=False).code == 2
    assert run("cancel", check=False).code == 2
    assert run("cancel", "--all", "a", check=False).code == 2


#: Ignores SIGINT (its children do too) and prints a line when it has begun to spawn.
SPAWNS = """
import os, signal, subprocess, sys, time
signal.alarm(60)
signal.signal(signal.SIGINT, signal.SIG_IGN)
while not os.path.exists(sys.argv[1]): time.sleep(0.01)
child = subprocess.Popen([sys.executable, "-m", "agentctl", "spawn", "--queue", "--name", "child", "--", "sleep", "50"])
print("ready", flush=True)
child.wait()
print("spawned", child.returncode, flush=True)
while True: signal.pause()
"""


def test_a_worker_that_is_being_cancelled_starts_nobody_any_more(root: Path, tmp_path: Path) -> None:
    """Its spawn began before the request: it waits for the queue's lock, and checks again once it has it."""
    task = new_task(cap=2, grace=30)
    lock = os.open(task.path / "queue.lock", os.O_RDWR | os.O_CREAT, 0o600)
    spawn([sys.executable, "-c", SPAWNS, str(tmp_path / "gate")], name="a")
    fcntl.flock(lock, fcntl.LOCK_EX)
    (tmp_path / "gate").touch()
    wait_until((task.agent("child") / "spec.json").exists, what="the spawn to be under way")
    cancelling = start("cancel", "a", "--no-wait")  # the cancel waits for the lock too
    wait_until((task.agent("a") / "cancel.json").exists, what="the request")
    os.close(lock)
    assert cancelling.wait(timeout=20) == 0
    assert wait_for_text(task.agent("a") / "stdout.log", "spawned") == "ready\nspawned 1\n"
    assert "starts nothing new" in (task.agent("a") / "stderr.log").read_text(encoding="utf-8")
    assert statuses() == {"a": "running"}
    run("cancel", "a", "--grace-seconds", "0.05")


@pytest.mark.slow
def test_a_stopped_shim_is_continued_by_a_cancel(root: Path) -> None:
    task = new_task(grace=5)
    spawn(worker("sleeps", 60), name="a")
    says_ready(task, "a")
    shim = task.shim_of("a")
    os.kill(shim, signal.SIGSTOP)
    stands(shim)
    assert run("cancel", "a", "--json").json["cancelled"] is True
    assert is_settled(task, "a")["exitCode"] == 130
