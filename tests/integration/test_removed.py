"""At stake: what somebody removes stays removed, and what ran there ends: nothing runs on that no command knows."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import psutil
import pytest

from tests.agent_steps import agent_world
from tests.life import Known, known, leader_of, lives, living, members
from tests.steps import Task, new_task, spawn, statuses
from tests.support import remove, run, wait_until, worker

pytestmark = pytest.mark.slow


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    return agent_world(tmp_path, monkeypatch, cap=8)


def all_blocked(task: Task, number: int) -> dict[str, list[Known]]:
    """Start agents that are each blocked by a permission; return the processes of each, its shim first."""
    names = [f"ag{one}" for one in range(number)]
    rows = [{"agent": "general", "name": name, "prompt": f"permit touch {name}"} for name in names]
    run("spawn", "--batch", "-", stdin="".join(f"{json.dumps(row)}\n" for row in rows))
    for _ in names:
        run("wait-any", "--for", "blocked", "--timeout-seconds", "20")
    return {name: tree_of(task, name) for name in names}


def tree_of(task: Task, name: str) -> list[Known]:
    """Return a worker's shim, and every process below it."""
    shim = psutil.Process(task.shim_of(name))
    return [known(process.pid) for process in (shim, *shim.children(recursive=True))]


def end(*trees: list[Known]) -> None:
    wait_until(
        lambda: [process for tree in trees for process in living(tree)],
        accept=lambda left: not left,
        what="its processes to end",
    )


def test_a_removed_root_takes_all_its_blocked_agents_along(task: Task, root: Path) -> None:
    trees = all_blocked(task, 6)
    assert all(len(tree) >= 3 for tree in trees.values()), "a shim, a host and a program each"
    remove(root)
    end(*trees.values())
    assert not root.exists()


def test_a_removed_task_that_is_made_anew_is_another_one(task: Task, root: Path, tmp_path: Path) -> None:
    trees = all_blocked(task, 2)
    remove(task.path)
    run("new", "Again", "--id", "t1", "--max-concurrent", "8")
    for name in trees:
        spawn(worker("waits_for_file", tmp_path / "gate"), name=name)
    mine = {name: leader_of(task, name) for name in trees}
    end(*trees.values())
    assert statuses() == dict.fromkeys(trees, "running")
    assert all(map(lives, mine.values()))
    (tmp_path / "gate").touch()
    for name in trees:
        run("wait", name)
        assert [one["type"] for one in task.events(of=name)] == ["agent.queued", "agent.started", "agent.completed"]
        assert not (task.agent(name) / "interactions").exists()


def test_the_removed_folder_of_one_worker_ends_that_one_alone(task: Task) -> None:
    trees = all_blocked(task, 2)
    gone, *others = trees
    remove(task.agent(gone))
    end(trees[gone])
    run("wait", gone, check=False)
    assert not task.agent(gone).exists()
    assert statuses() == {gone: "cancelled", **dict.fromkeys(others, "blocked")}
    (told,) = task.events("agent.cancelled")
    assert (told["agentInstance"], told["payload"]["message"]) == (gone, "its folder was removed")
    for name in others:
        run("interact", "respond", name, "--id", "q1", "deny")
    run("wait-all", check=False)
    assert statuses() == {gone: "cancelled", **dict.fromkeys(others, "completed")}


def test_queued_workers_of_a_removed_task_vanish(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1, grace=0.1)
    pids = tmp_path / "pids"
    spawn(worker("stubborn", pids), name="a")
    tree = [known(task.shim_of("a")), *members(pids).values()]
    spawn(["touch", str(tmp_path / "started")], "--queue", name="b")
    remove(root)
    end(tree)
    assert not root.exists()
    assert not (tmp_path / "started").exists()


def test_a_host_without_a_shim_stops_by_itself(task: Task, root: Path) -> None:
    (tree,) = all_blocked(task, 1).values()
    os.kill(tree[0].pid, signal.SIGKILL)
    remove(root)
    end(tree)
    assert not root.exists()


@pytest.mark.slow
def test_a_removed_sub_task_leaves_the_queue_of_its_tree_usable(task: Task, root: Path, tmp_path: Path) -> None:
    task.set_cap(1)
    spawn(worker("waits_for_file", tmp_path / "gate"), name="a")
    run("subtask", "general", "Below", "--no-wait")
    below = next(path for path in (root / "tasks").iterdir() if path != task.path)
    remove(below)
    spawn(["true"], "--queue", name="b")
    (tmp_path / "gate").touch()
    run("wait", "b")
    assert statuses() == {"a": "completed", "b": "completed"}
    assert not below.exists()


def test_doctor_names_what_runs_for_a_task_that_is_gone_and_ends_it(root: Path, tmp_path: Path) -> None:
    """A shim that is stopped cannot notice; a worker whose shim was killed has nobody who could."""
    task = new_task(cap=2, grace=0.1)
    for name in ("a", "b"):
        spawn(worker("stubborn", tmp_path / name), name=name)
    trees = {name: [known(task.shim_of(name)), *members(tmp_path / name).values()] for name in ("a", "b")}
    os.kill(trees["a"][0].pid, signal.SIGKILL)
    os.kill(trees["b"][0].pid, signal.SIGSTOP)
    remove(root)
    alive = [*trees["a"][1:], *trees["b"]]
    told = [one for one in run("doctor", "--json", check=False).json if "its folder is gone" in one["what"]]
    assert {int(one["what"].partition(": pid ")[2].split(",")[0]) for one in told} == {one.pid for one in alive}
    assert {(one["severity"], one["next"]) for one in told} == {("warning", "agentctl doctor --fix")}
    assert living(alive) == alive
    told = [one for one in run("doctor", "--fix", "--json", check=False).json if "its folder is gone" in one["what"]]
    assert [one["fixed"] for one in told] == [True] * len(alive)
    assert living(alive) == []
    assert not [one for one in run("doctor", "--json").json if "its folder is gone" in one["what"]]
    assert not root.exists()
