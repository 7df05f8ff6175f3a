"""At stake: a decision to stop many is one decision. Once it is made nothing it is about starts, whoever is killed."""

from __future__ import annotations

import fcntl
import json
import os
import random
import signal
import sys
from pathlib import Path

import pytest

from tests.life import is_settled, kill_shims, known, leader_of, lives, living, says_ready
from tests.shells import AGENTCTL, define_shells
from tests.steps import Task, held, new_task, spawn, spawn_batch, statuses
from tests.support import run, start, text_in, wait_until, worker

AT_THE_ORDER = {"AGENTCTL_FAILPOINT": "stop.after-order"}
STOPPED_AT_THE_ORDER = {"AGENTCTL_FAILPOINT": "stop.after-order:stop"}


def begun(task: Task) -> set[str]:
    """Return the workers that were started, or have a place and are about to be."""
    placed = [json.loads(text_in(place) or "{}").get("instance") for place in (task.path / "slots").iterdir()]
    return {*task.order("agent.started"), *filter(None, placed)}


def short_ones(many: int) -> list[dict[str, object]]:
    """Return the lines of a batch of workers that end at once."""
    return [{"name": f"n{number}", "argv": ["true"]} for number in range(many)]


def test_all_that_wait_are_ended_in_one_go(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    spawn_batch([held(tmp_path / "gate", "first"), *short_ones(40)])
    told = run("cancel", "--all", "--json")
    names = ["first", *(f"n{number}" for number in range(40))]
    assert [(one["agentInstance"], one["status"]) for one in told.json] == [(name, "cancelled") for name in names]
    assert [one["startedMeanwhile"] for one in told.json] == [False] * 41
    assert task.order("agent.started") == ["first"]
    ends = [event for event in task.events("agent.cancelled") if event["agentInstance"] != "first"]
    assert [event["agentInstance"] for event in ends] == [f"n{number}" for number in range(40)]
    assert not (task.path / "stop.json").exists()
    assert task.tickets() == []
    assert not any((tmp_path / "run" / "agentctl").iterdir())
    assert task.roster() == dict.fromkeys(names, "failed")


def test_it_says_how_many_were_started_in_between(root: Path, tmp_path: Path) -> None:
    new_task(cap=1)
    spawn_batch([held(tmp_path / "gate", "first"), *short_ones(3)])
    told = run("cancel", "--all")
    assert told.err == "started in the meantime: 0\n"
    assert told.out.splitlines() == [f"{name} cancelled" for name in ("first", "n0", "n1", "n2")]


def test_what_starts_before_the_order_is_on_disk_is_told(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    spawn_batch([held(tmp_path / "gate", "first"), {"name": "n0", "argv": ["sleep", "60"]}, *short_ones(3)[1:]])
    cancelling = start("cancel", "--all", "--json", env={"AGENTCTL_FAILPOINT": "stop.before-order:stop"})
    wait_until(lambda: is_stopped(cancelling.pid), what="the cancel to stand before its order")
    (tmp_path / "gate").touch()
    task.has("agent.started", "n0")
    os.kill(cancelling.pid, signal.SIGCONT)
    out, _ = cancelling.communicate(timeout=60)
    started = {one["agentInstance"]: one["startedMeanwhile"] for one in json.loads(out)}
    assert started == {"first": False, "n0": True, "n1": False, "n2": False}
    assert statuses() == {"first": "completed", "n0": "cancelled", "n1": "cancelled", "n2": "cancelled"}


def test_with_recursive_the_sub_tasks_are_part_of_the_decision(root: Path, tmp_path: Path) -> None:
    define_shells()
    task = new_task(cap=1, depth=2)
    spawn_batch([held(tmp_path / "gate", "first"), *short_ones(1)])
    run("subtask", "shell", ": child", "--no-wait", "--id", "child")
    assert run("cancel", "--all", "--recursive", env=AT_THE_ORDER, check=False).code == -signal.SIGKILL
    assert {one.partition("/")[0] for one in json.loads((task.path / "stop.json").read_bytes())["workers"]} == {
        "t1", "child"
    }  # fmt: skip
    (tmp_path / "gate").touch()
    task.ended("first", "n0")
    run("wait-all", "--task", "child", check=False)
    assert {row["status"] for row in run("list", "--task", "child", "--json").json} == {"cancelled"}
    assert task.order("agent.started") == ["first"]


def test_what_a_worker_has_started_in_another_tree_is_part_of_its_cancel(root: Path, tmp_path: Path) -> None:
    """Two trees have two queues, and a decision in each."""
    task = new_task(cap=1, depth=2)
    run("new", "Another", "--id", "other", "--max-concurrent", "1", "--max-depth", "2", "--no-use")
    spawn(worker("exits", 0, "--after-file", tmp_path / "gate"), "--task", "other", name="busy")
    line = "; ".join(f"{AGENTCTL} spawn --task other --queue --name c{number} -- true" for number in range(3))
    spawn(["sh", "-c", f"{line}; echo ready; exec sleep 60"], name="a")
    says_ready(task, "a")
    run("cancel", "a")
    shown = {row["agentInstance"]: row["status"] for row in run("list", "--task", "other", "--json").json}
    assert shown == {"busy": "running", "c0": "cancelled", "c1": "cancelled", "c2": "cancelled"}
    (tmp_path / "gate").touch()
    run("wait-all", "--task", "other", check=False)
    assert Task(task.path.parent / "other").order("agent.started") == ["busy"]


@pytest.mark.parametrize("completed_by", ["an end", "a spawn", "another cancel"])
def test_a_canceller_killed_after_its_order_has_decided(root: Path, tmp_path: Path, completed_by: str) -> None:
    task = new_task(cap=1)
    spawn_batch([held(tmp_path / "gate", "first"), *short_ones(20)])
    says_ready_or_runs(task, "first")
    assert run("cancel", "--all", env=AT_THE_ORDER, check=False).code == -signal.SIGKILL
    order = json.loads((task.path / "stop.json").read_bytes())
    assert order["by"] == "user"
    assert set(order["workers"]) == {"t1/first", *(f"t1/n{number}" for number in range(20))}
    assert task.events("agent.cancelled", "agent.cancel_requested") == []
    if completed_by == "an end":
        (tmp_path / "gate").touch()
    elif completed_by == "a spawn":
        run("spawn", "--queue", "--wait", "--name", "later", "--", "true")
    else:
        run("cancel", "n7")
        run("wait-all", check=False)
    task.ended("first", *(f"n{number}" for number in range(20)))
    wait_until(lambda: not (task.path / "stop.json").exists(), what="the order to be carried out")
    told = statuses()
    assert {told[f"n{number}"] for number in range(20)} == {"cancelled"}
    assert set(task.order("agent.started")) <= {"first", "later"}
    assert told.get("later", "completed") == "completed"
    if completed_by != "an end":
        assert told["first"] == "cancelled"


def says_ready_or_runs(task: Task, instance: str) -> None:
    """Wait until a worker runs."""
    task.has("agent.started", instance)


@pytest.mark.parametrize("count", [2, pytest.param(50, marks=pytest.mark.soak)])
def test_between_the_order_and_its_end_nothing_starts(root: Path, count: int) -> None:
    """A queue in full swing, a cancel at any moment, which is killed, or goes on, once its order is on disk."""
    seed = int(os.environ.get("AGENTCTL_TEST_SEED", random.randrange(1 << 32)))
    print(f"AGENTCTL_TEST_SEED={seed}")
    chance = random.Random(seed)
    task = new_task(cap=2, grace=0.05)
    for turn in range(count):
        take_turn(task, chance, f"r{turn}", f"AGENTCTL_TEST_SEED={seed}")


def take_turn(task: Task, chance: random.Random, turn: str, seed: str) -> None:
    """Fill the queue, cancel all, kill the canceller or let it go on, and see that nothing has started since."""
    names = {f"{turn}-{number}" for number in range(chance.randrange(3, 25))}
    argv = ["sleep", f"{chance.choice((0, 0.01, 0.05)):g}"]
    spawn_batch([{"name": name, "argv": argv} for name in sorted(names)])
    begins = chance.randrange(min(6, len(names)))
    wait_until(lambda: len(begun(task) & names), accept=lambda many: many >= begins, what="some to start")
    cancelling = start("cancel", "--all", env=STOPPED_AT_THE_ORDER)
    wait_until(
        lambda: cancelling.poll() is not None or is_stopped(cancelling.pid), what="the order, or that none is needed"
    )
    had_begun, ordered, is_killed = begun(task), ordered_in(task), chance.random() < 0.6
    if cancelling.poll() is None:
        os.kill(cancelling.pid, signal.SIGKILL if is_killed else signal.SIGCONT)
    cancelling.wait(timeout=30)
    if is_killed and chance.random() < 0.5:
        run("spawn", "--queue", "--name", f"later-{turn}", "--", "true")
    run("wait-all", check=False)
    wait_until(lambda: not (task.path / "stop.json").exists(), what="the order to be carried out")
    assert ({*task.order("agent.started")} - had_begun) & ordered == set(), seed
    assert task.tickets() == [], seed


def is_stopped(pid: int) -> bool:
    """Return whether a process stands."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "T"


def ordered_in(task: Task) -> set[str]:
    """Return the workers that the order is about."""
    file = task.path / "stop.json"
    rows = json.loads(file.read_bytes())["workers"] if file.exists() else []
    return {row.partition("/")[2] for row in rows}


def test_many_names_are_one_decision_and_others_go_on(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    spawn_batch([held(tmp_path / "gate", "first"), *short_ones(4)])
    assert run("cancel", "n1", "n3", env=AT_THE_ORDER, check=False).code == -signal.SIGKILL
    (tmp_path / "gate").touch()
    run("wait-all", check=False)
    assert statuses() == {"first": "completed", "n0": "completed", "n1": "cancelled", "n2": "completed",
                          "n3": "cancelled"}  # fmt: skip
    assert "n1" not in task.order("agent.started")


@pytest.mark.slow
def test_the_running_ones_are_asked_although_the_queue_is_locked(root: Path, tmp_path: Path) -> None:
    """Whoever holds the queue's lock may be stopped: those that run must not wait for it."""
    task = new_task(cap=2, grace=5)
    for name in ("a", "b"):
        spawn(worker("sleeps", 60), name=name)
        says_ready(task, name)
    spawn(["true"], "--queue", name="c")
    leaders = [known(leader_of(task, name).pid) for name in ("a", "b")]
    lock = os.open(task.path / "queue.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    cancelling = start("cancel", "--all")
    wait_until(lambda: living(leaders), accept=lambda left: not left, what="those that run to end")
    assert task.tickets() == ["c"]
    os.close(lock)
    assert cancelling.wait(timeout=30) == 0
    assert statuses() == dict.fromkeys("abc", "cancelled")
    assert "c" not in task.order("agent.started")


@pytest.mark.slow
def test_an_order_that_cannot_be_read_starts_nothing_and_doctor_sets_it_aside(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    spawn_batch([held(tmp_path / "gate", "first"), *short_ones(1)])
    (task.path / "stop.json").write_text('{"workers": ["../../elsewhere/x"]}', encoding="ascii")
    (tmp_path / "gate").touch()
    task.ended("first")
    refused = run("spawn", "--name", "x", "--", "true", check=False)
    assert refused.code == 1
    assert "stop.json" in refused.err
    assert task.order("agent.started") == ["first"]
    found = run("doctor", check=False)
    assert "stop.json" in found.out
    run("doctor", "--fix", check=False)
    run("wait-all")
    assert statuses()["n0"] == "completed"


def test_a_tree_of_workers_is_cancelled_by_one_decision(root: Path) -> None:
    """The children in the queue, too: the parent's shim passes its request on to all of them at once."""
    task = new_task(cap=2, depth=2, grace=5)
    children = "; ".join(
        f"{sys.executable} -m agentctl spawn --queue --name c{number} -- sleep 60" for number in range(4)
    )
    spawn(["sh", "-c", f"{children}; echo ready; exec sleep 60"], name="a")
    task.has("agent.queued", "c3")
    says_ready(task, "a")
    leader = leader_of(task, "a")
    run("cancel", "a")
    assert not lives(leader)
    assert statuses() == dict.fromkeys(("a", "c0", "c1", "c2", "c3"), "cancelled")
    assert task.order("agent.started") == ["a", "c0"]


def test_what_is_cancelled_without_shims_is_ended_by_the_same_decision(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    spawn(worker("sleeps", 60), name="a")
    says_ready(task, "a")
    spawn(["true"], "--queue", name="b")
    kill_shims(task, "a")
    told = run("cancel", "--all", "--json").json
    assert {one["agentInstance"]: one["status"] for one in told} == dict.fromkeys("ab", "cancelled")
    assert is_settled(task, "a")["status"] == "cancelled"
