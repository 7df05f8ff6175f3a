"""At stake: a pause stops a worker's whole tree and its clock, and unpause continues it as if nothing had happened."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.life import is_settled, leader_of, lives, members, passes, says_ready, state_of
from tests.steps import new_task, row, spawn
from tests.support import run, wait_until, worker


@pytest.mark.slow
def test_pause_stops_the_whole_tree_and_unpause_continues_it(root: Path, tmp_path: Path) -> None:
    """Also processes of the tree that have left the group, the session and their parent."""
    task = new_task()
    pids = tmp_path / "pids"
    spawn(worker("stubborn", pids), name="a")
    tree = members(pids)
    told = run("pause", "a", "--json").json
    assert (told["agentInstance"], told["paused"]) == ("a", True)
    # True as soon as the command returns, not some time later.
    assert {name: state_of(process.pid) for name, process in tree.items()} == dict.fromkeys(tree, "T")
    assert (row("a")["paused"], row("a")["status"]) == (True, "running")
    assert run("pause", "a", "--json").json["paused"] is True
    assert run("unpause", "a", "--json").json["paused"] is False
    wait_until(
        lambda: {state_of(process.pid) for process in tree.values()},
        accept=lambda states: states == {"S"},
        what="all to go on",
    )
    assert row("a")["paused"] is False
    assert [event["type"] for event in task.events("agent.paused", "agent.unpaused")] == [
        "agent.paused",
        "agent.unpaused",
    ]
    run("cancel", "a", "--grace-seconds", "0.1")


def test_a_worker_that_fills_its_folder_is_paused_and_cancelled_as_any_other(root: Path) -> None:
    """So many names that no single look at the folder shows all of them."""
    task = new_task(grace=0.1)
    fill = 'cd "$AGENTCTL_AGENT_DIR" && seq 5000 | xargs touch && touch filled && exec sleep 60'
    spawn(["sh", "-c", fill], name="a")
    wait_until((task.agent("a") / "filled").exists, what="its files")
    assert run("pause", "a", "--json").json["paused"] is True
    assert row("a")["paused"] is True
    run("unpause", "a")
    run("cancel", "a")
    assert is_settled(task, "a")["status"] == "cancelled"


@pytest.mark.slow
def test_the_clock_of_a_paused_worker_stands_still(root: Path, tmp_path: Path) -> None:
    task = new_task()
    limit_s = 3.0  # long enough for a pause to be requested in time
    argv = worker("waits_for_file", tmp_path / "gate")
    spawn(argv, "--timeout-seconds", str(limit_s), name="a")
    run("pause", "a")
    passes(limit_s + 0.5)
    assert task.exit("a") is None
    (tmp_path / "gate").touch()
    run("unpause", "a")
    run("wait", "a")
    assert is_settled(task, "a")["status"] == "completed"


@pytest.mark.slow
def test_after_a_pause_the_rest_of_the_time_limit_still_ends_it(root: Path) -> None:
    task = new_task(grace=0.1)
    spawn(worker("sleeps", 60), "--timeout-seconds", "3", name="a")
    run("pause", "a")
    run("unpause", "a")
    assert run("wait", "a", check=False).code == 7
    assert is_settled(task, "a")["reason"] == "timed_out"


@pytest.mark.slow
def test_a_paused_worker_keeps_its_slot_and_waits_go_on(root: Path) -> None:
    new_task(cap=1)
    spawn(worker("sleeps", 60), name="a")
    run("pause", "a")
    assert spawn(["true"], name="b", check=False).code == 5
    assert run("wait-any", "--timeout-seconds", "0.1", check=False).code == 4
    run("cancel", "a")


@pytest.mark.slow
def test_a_paused_worker_that_is_killed_has_ended(root: Path) -> None:
    task = new_task()
    spawn(worker("sleeps", 60), name="a")
    says_ready(task, "a")
    leader = leader_of(task, "a")
    run("pause", "a")
    os.kill(leader.pid, signal.SIGKILL)
    run("wait", "a", check=False)
    assert not lives(leader)
    assert (is_settled(task, "a")["signal"], row("a")["paused"]) == ("SIGKILL", False)


@pytest.mark.slow
def test_what_does_not_run_cannot_be_paused_and_each_says_why(root: Path, tmp_path: Path) -> None:
    new_task(cap=1)
    spawn(worker("waits_for_file", tmp_path / "gate"), name="a")
    spawn([sys.executable, "-c", ""], "--queue", name="b")
    queued = run("pause", "b", check=False)
    assert (queued.code, "still in the queue" in queued.err) == (1, True)
    (tmp_path / "gate").touch()
    run("wait", "a", "b")
    ended = run("unpause", "a", check=False)
    assert (ended.code, "it is over" in ended.err) == (1, True)
    assert run("pause", "nobody", check=False).code == 3
