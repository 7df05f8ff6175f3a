"""At stake: no unrelated process is ever signalled, and no worker that cannot be judged from here is called lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.life import Known, forge, is_settled, kill_shims, leader_of, lives, orphan, read, says_ready
from tests.steps import new_task, row, spawn, spawn_batch, statuses
from tests.strangers import Strangers
from tests.support import PROGRAM, environment, run, wait_until, worker


def forgeries(them: Strangers, mine: Known) -> dict[str, dict[str, Any]]:
    """Return changes with which a worker.json may be forged, by name."""
    return {
        "wrong-start": {"start": mine.start + 1},
        "earlier-start": {"start": 1},
        "a-strangers-pid": {"pid": them.leader.pid},
        "a-strangers-pid-and-no-start": {"pid": them.leader.pid, "start": 0},
        "a-child-of-a-stranger-whole": {"pid": them.child.pid, "start": them.child.start},
        "init": {"pid": 1, "start": 0},
        "nobody": {"pid": 0},
        "a-group": {"pid": -them.leader.pid},
        "all-processes": {"pid": -1},
        "infinite": {"pid": float("inf"), "start": float("nan")},
        "text": {"pid": "'; kill", "boot": ["x"]},
        "huge": {"pid": 1 << 70},
        "no-cookie": {"pid": them.leader.pid, "cookie": None},
        "empty-cookie": {"pid": them.leader.pid, "start": 0, "cookie": ""},
    }


@pytest.mark.slow
def test_forged_identities_make_nobody_signal_a_stranger(strangers: Strangers) -> None:
    names = list(forgeries(strangers, strangers.leader))
    task = new_task(cap=len(names), grace=0.05)
    spawn_batch({"name": name, "argv": worker("sleeps", 60)} for name in names)
    for name in names:
        says_ready(task, name)
    mine = {name: leader_of(task, name) for name in names}
    kill_shims(task, *names)
    for name in names:
        forge(task.agent(name) / "worker.json", **forgeries(strangers, mine[name])[name])
    assert set(statuses()) == set(names)
    run("show", "init")
    run("doctor", check=False)
    told = run("cancel", "--all", "--json", check=False)
    assert told.code in (0, 1), told
    strangers.are_untouched()
    for name, leader in mine.items():
        decision = task.exit(name)
        assert decision is not None, name
        assert decision["status"] in ("cancelled", "failed"), name
        # It is found by its cookie if the forgery kept that; otherwise at least no other process was signalled.
        if decision["status"] == "cancelled" and "cookie" not in name and "whole" not in name:
            assert not lives(leader), name
        if lives(leader):
            os.kill(leader.pid, signal.SIGKILL)


def test_a_forged_shim_is_neither_believed_nor_signalled(strangers: Strangers) -> None:
    task = new_task(cap=2, grace=0.05)
    leader = orphan(task, "a")
    real = {"machine": None, "boot": None, "pidNamespace": None}
    real = {key: read(task.agent("a") / "shim.json")[key] for key in real}
    theirs = {**real, "pid": strangers.leader.pid, "start": strangers.leader.start}
    forge(task.agent("a") / "shim.json", **theirs)
    slot = next(path for path in (task.path / "slots").iterdir() if path.read_bytes())
    forge(slot, shim=theirs)
    (task.agent("a") / "control").unlink()
    assert row("a")["health"] == "unsupervised"
    run("cancel", "a")
    strangers.are_untouched()
    assert not lives(leader)
    assert is_settled(task, "a")["status"] == "cancelled"


def test_another_boot_is_the_end_of_a_worker_without_any_signal(strangers: Strangers) -> None:
    """The machine was restarted: pid and start time of that boot may be another process's now."""
    task = new_task(cap=1)
    leader = orphan(task, "a")
    before = {
        "boot": "00000000-0000-0000-0000-000000000000",
        "pid": strangers.leader.pid,
        "start": strangers.leader.start,
    }
    forge(task.agent("a") / "worker.json", **before)
    forge(task.agent("a") / "shim.json", boot=before["boot"])
    assert statuses() == {"a": "failed"}
    assert is_settled(task, "a")["reason"] == "lost"
    assert run("cancel", "a", "--json").json["cancelled"] is False
    strangers.are_untouched()
    assert lives(leader)  # it was never signalled either: the file named another boot
    os.kill(leader.pid, signal.SIGKILL)
    run("spawn", "--wait", "--name", "b", "--", "true")


@pytest.mark.slow
def test_another_machine_is_elsewhere_and_never_lost(root: Path) -> None:
    task = new_task(cap=1, grace=0.05)
    leader = orphan(task, "a")
    forge(task.agent("a") / "worker.json", machine="some-other-machine", boot="its-boot")
    assert (row("a")["status"], row("a")["health"]) == ("running", "elsewhere")
    refused = run("cancel", "a", check=False)
    assert refused.code == 1
    assert "on another machine" in refused.out
    assert run("wait-any", "--timeout-seconds", "0", check=False).code == 4
    assert spawn(["true"], name="b", check=False).code == 5  # the worker may be running there
    assert run("doctor", "--fix", check=False).code in (0, 1)
    assert task.exit("a") is None
    assert lives(leader)
    os.kill(leader.pid, signal.SIGKILL)


def can_unshare() -> bool:
    return os.geteuid() == 0 and subprocess.run(["unshare", "-pf", "--mount-proc", "true"], check=False).returncode == 0


def from_inside(*args: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a new pid namespace, in which the pids from outside mean nothing."""
    argv = ["unshare", "-pf", "--mount-proc", *PROGRAM, *args]
    return subprocess.run(argv, env=environment(), capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.skipif(not can_unshare(), reason="needs the right to make a pid namespace")
def test_in_another_pid_namespace_workers_are_elsewhere_and_never_lost(root: Path) -> None:
    task = new_task(cap=2, grace=0.05)
    leader = orphan(task, "a")
    spawn(worker("sleeps", 60), name="b")
    inside = {
        one["agentInstance"]: (one["status"], one["health"]) for one in json.loads(from_inside("list", "--json").stdout)
    }
    assert inside == {"a": ("running", "elsewhere"), "b": ("running", "supervised")}
    assert from_inside("show", "a").returncode == 0
    assert from_inside("wait-any", "--timeout-seconds", "0.1").returncode == 4
    assert "another pid namespace" in from_inside("doctor").stdout
    refused = from_inside("cancel", "a")
    assert (refused.returncode, "cancel it there" in refused.stdout) == (1, True)
    assert from_inside("spawn", "--", "true").returncode == 1
    assert task.exit("a") is None
    assert lives(leader)

    # A live shim obeys requests from anywhere.
    assert from_inside("cancel", "b").returncode == 0
    assert is_settled(task, "b")["status"] == "cancelled"
    assert row("a")["health"] == "unsupervised"
    run("cancel", "a")
    assert not lives(leader)


@pytest.mark.skipif(not can_unshare(), reason="needs the right to make a pid namespace")
@pytest.mark.slow
def test_what_ended_in_another_namespace_cannot_be_judged_from_here(root: Path) -> None:
    """Everything started inside dies with the namespace, but from here that cannot be proven."""
    task = new_task(cap=2)
    spawned = from_inside("spawn", "--name", "a", "--", *worker("sleeps", 60))
    assert spawned.returncode == 0, spawned  # the first of its tree of tasks, as in a container
    wait_until(lambda: row("a")["health"], accept=lambda health: health != "supervised", what="its shim to die")
    assert (row("a")["status"], row("a")["health"]) == ("running", "elsewhere")
    assert task.exit("a") is None
