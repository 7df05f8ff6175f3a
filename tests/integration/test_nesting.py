"""At stake: workers that start workers never deadlock, never exceed the cap, and end without harming others."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from pathlib import Path

import pytest

from tests.life import set_config
from tests.steps import Task, held, kill, most_at_once, new_task, row, spawn, spawn_batch, statuses
from tests.support import run, wait_for_json, wait_until, worker

AGENTCTL = f"{sys.executable} -m agentctl"


def by_parent() -> dict[str, str | None]:
    """Return instance -> the worker that started it."""
    return {one["agentInstance"]: one["parent"] for one in run("list", "--json").json}


def test_depth_beyond_the_limit_is_refused_and_burns_nothing(root: Path) -> None:
    task = new_task(cap=5)
    spawn(
        ["sh", "-c", f"{AGENTCTL} spawn --name b -- {AGENTCTL} spawn --name c -- true && {AGENTCTL} wait b"], name="a"
    )
    assert run("wait", "a", check=False).code == 7
    assert by_parent() == {"a": None, "b": "a"}
    said = (task.agent("b") / "stderr.log").read_text()
    assert "Maximum subagent depth exceeded: b is at depth 1, maxDepth is 1" in said
    assert not task.agent("c").exists()
    assert row("b")["depth"] == 1


@pytest.mark.parametrize("line", ["spawn -- true", "subtask general x"])
def test_a_worker_is_told_no_way_over_its_limit_and_has_none_in_task_yaml(root: Path, line: str) -> None:
    task = new_task(cap=5, depth=0)
    lift = f"flock {task.path / 'task.lock'} sed -i s/maxDepth:.0/maxDepth:\\ 9/ {task.path / 'task.yaml'}"
    spawn(["sh", "-c", f"{AGENTCTL} {line}; {lift} && {AGENTCTL} {line}"], name="a")
    run("wait", "a", check=False)
    said = (task.agent("a") / "stderr.log").read_text()
    assert "maxDepth: 9" in (task.path / "task.yaml").read_text()
    assert said.count("do the work here, or leave it to whoever started you") == 2
    assert "task.yaml" not in said
    assert set(statuses()) == {"a"}, "what counts is what held when it was started"
    assert "raise" not in said


@pytest.mark.slow
def test_no_depth_at_all_can_be_asked_for(root: Path) -> None:
    task = new_task(depth=0)
    spawn(["sh", "-c", f"{AGENTCTL} spawn -- true"], name="a")
    task.ended("a")
    assert (task.exit("a") or {})["exitCode"] == 1
    assert statuses() == {"a": "failed"}


@pytest.mark.slow
def test_five_levels_finish_at_a_cap_of_one(root: Path) -> None:
    task = new_task(cap=1, depth=5)
    spawn(worker("nests", 5, 1), name="top")
    assert run("wait", "top", timeout=60).code == 0
    rows = run("list", "--json").json
    assert [one["depth"] for one in rows] == [0, 1, 2, 3, 4, 5]
    assert {one["status"] for one in rows} == {"completed"}
    assert task.tickets() == []


@pytest.mark.slow
def test_two_parents_that_wait_at_a_cap_of_two_both_finish(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=2)
    notes = tmp_path / "notes"
    leaf = shlex.join(worker("overlaps", notes))
    script = f"for n in 1 2; do {AGENTCTL} spawn --queue -- {leaf} || exit 1; done; {AGENTCTL} wait-all"
    spawn_batch([{"name": name, "argv": ["sh", "-c", script]} for name in "ab"])
    task.ended("a", "b")
    assert set(statuses().values()) == {"completed"}
    assert len(statuses()) == 6
    assert most_at_once(notes) <= 2, "each parent lends its slot to one child at a time"


@pytest.mark.slow
def test_children_in_turn_at_a_cap_of_one_never_overlap(root: Path, tmp_path: Path) -> None:
    new_task(cap=1)
    notes = tmp_path / "notes"
    leaf = shlex.join(worker("overlaps", notes))
    script = f"for n in 1 2 3 4; do {AGENTCTL} spawn --queue -- {leaf} || exit 1; done; {AGENTCTL} wait-all"
    spawn(["sh", "-c", script], name="a")
    run("wait", "a")
    assert most_at_once(notes) == 1
    assert len(notes.read_text().splitlines()) == 8


@pytest.mark.slow
def test_a_child_that_need_not_wait_is_no_guest(root: Path) -> None:
    task = new_task(cap=2)
    spawn(["sh", "-c", f"{AGENTCTL} spawn --wait --name b -- true"], name="a")
    run("wait", "a")
    assert by_parent() == {"a": None, "b": "a"}
    assert not (task.path / "slots" / "1.guest").exists()


@pytest.mark.slow
def test_wait_any_in_a_worker_is_about_its_own_and_its_consumer(root: Path) -> None:
    task = new_task(cap=3)
    spawn(["true"], name="stranger")
    task.ended("stranger")
    spawn(
        ["sh", "-c", f"{AGENTCTL} spawn --name child -- true; {AGENTCTL} wait-any; {AGENTCTL} wait-any; echo $?"],
        name="a",
    )
    task.ended("a")
    lines = (task.agent("a") / "stdout.log").read_text().splitlines()
    assert lines[1:] == ["child completed", "6"]
    given = {run("wait-any").out for _ in range(3)}
    assert given == {"stranger completed\n", "child completed\n", "a completed\n"}


def test_a_worker_cannot_wait_for_itself(root: Path) -> None:
    task = new_task()
    spawn(["sh", "-c", f"{AGENTCTL} wait a; {AGENTCTL} wait-any a; {AGENTCTL} wait-all; echo $?"], name="a")
    task.ended("a")
    assert (task.agent("a") / "stderr.log").read_text().count("a cannot wait for itself") == 2
    assert (task.agent("a") / "stdout.log").read_text() == "6\n", "it has no children"


@pytest.mark.slow
def test_a_nested_question_is_found_from_anywhere(root: Path) -> None:
    task = new_task(cap=1)
    ask = shlex.join(worker("asks", "--kind", "confirm", "Deeper?"))
    spawn(["sh", "-c", f"{AGENTCTL} spawn --queue --name deep -- {ask} && {AGENTCTL} wait deep"], name="a")
    task.has("agent.blocked", "deep")
    (told,) = run("interact", "list", "--json", cwd="/").json
    assert (told["agentInstance"], told["question"], told["waiting"]) == ("deep", "Deeper?", True)
    run("interact", "respond", "deep", "--id", "q1", "yes", cwd="/")
    task.ended("deep", "a")
    assert set(statuses().values()) == {"completed"}


def test_a_cancel_of_a_parent_ends_all_below_it_and_no_one_else(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=3, depth=2)
    spawn_batch([held(tmp_path / "gate", "stranger")])
    spawn(worker("nests", 2, 1, "--leaf-waits-for", tmp_path / "never"), name="top")
    leaf = wait_until(lambda: [name for name, one in by_depth(task).items() if one == 2], what="the leaf to start")[0]
    run("cancel", "top")
    told = statuses()
    assert told.pop("stranger") == "running"
    assert len(told) == 3
    assert leaf in told
    assert set(told.values()) == {"cancelled"}
    (tmp_path / "gate").touch()
    task.ended("stranger")


def by_depth(task: Task) -> dict[str, int]:
    """Return the depth of each worker that has started."""
    depth = {event["agentInstance"]: event["payload"].get("depth", 0) for event in task.events("agent.queued")}
    return {name: depth[name] for name in task.order("agent.started")}


@pytest.mark.slow
def test_a_parent_killed_while_it_waits_leaves_its_child_at_work(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    set_config(task, maxConcurrentAgents=1, graceSeconds=0.2, childrenAtEnd="leave")
    spawn(worker("nests", 1, 1, "--leaf-waits-for", tmp_path / "gate", "--file", tmp_path / "children"), name="top")
    (child,) = wait_for_json(tmp_path / "children")
    task.has("agent.started", child)
    os.kill(row("top")["pid"], signal.SIGKILL)
    task.ended("top")
    assert row("top")["reason"] == "signal"
    assert statuses()[child] == "running"
    assert spawn(["true"], check=False).code == 5, "the child has the slot now"
    (tmp_path / "gate").touch()
    task.ended(child)
    assert statuses()[child] == "completed"
    wait_until(lambda: spawn(["true"], name="last", check=False).code, accept=lambda code: code == 0)
    task.ended("last")


@pytest.mark.slow
def test_a_stranger_that_a_nested_shim_took_outlives_the_cancel_of_the_outer(root: Path, tmp_path: Path) -> None:
    """The nested shim is below the outer worker, but the worker that it guards now is unrelated to that one."""
    task = new_task(cap=2)
    gate = tmp_path / "gate"
    leaf = shlex.join(worker("exits", 0, "--after-file", tmp_path / "leaf"))
    spawn(["sh", "-c", f"{AGENTCTL} spawn --name nested -- {leaf}; exec sleep 100"], name="outer")
    task.has("agent.started", "nested")
    spawn_batch([held(gate, "stranger")])
    assert task.tickets() == ["stranger"]
    (tmp_path / "leaf").touch()
    task.has("agent.started", "stranger")
    assert task.shim_of("stranger") == task.shim_of("nested"), "the nested shim took it"

    assert run("cancel", "outer", "--json").json["status"] == "cancelled"
    assert statuses() == {"outer": "cancelled", "nested": "completed", "stranger": "running"}
    assert row("stranger")["health"] == "supervised"
    gate.touch()
    task.ended("stranger")
    assert statuses()["stranger"] == "completed"
    swept = (task.exit("outer") or {}).get("swept", [])
    assert not [one for one in swept if "shim" in one["command"]]


def test_a_nested_worker_and_its_shim_outlive_the_end_of_the_outer(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=2)
    set_config(task, maxConcurrentAgents=2, graceSeconds=0.2, childrenAtEnd="leave")
    leaf = shlex.join(worker("exits", 0, "--after-file", tmp_path / "leaf"))
    spawn(["sh", "-c", f"{AGENTCTL} spawn --name nested -- {leaf}"], name="outer")
    task.ended("outer")
    assert (task.exit("outer") or {})["status"] == "completed"
    assert row("nested")["health"] == "supervised"
    (tmp_path / "leaf").touch()
    task.ended("nested")
    assert statuses() == {"outer": "completed", "nested": "completed"}


@pytest.mark.slow
def test_a_child_is_not_started_by_a_parent_that_is_being_cancelled(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=3)
    ready = tmp_path / "ready"
    spawns = f"{AGENTCTL} spawn --name late -- true; exit 9"
    trap = f"trap '{spawns}' INT; touch {ready}; while :; do sleep 0.02; done"
    spawn(["bash", "-c", trap], "--grace-seconds", "20", name="a")
    wait_until(ready.exists)
    run("cancel", "a")
    assert "is being cancelled: it starts nothing new" in (task.agent("a") / "stderr.log").read_text()
    assert statuses() == {"a": "cancelled"}


@pytest.mark.slow
def test_the_shim_of_an_outer_worker_killed_leaves_the_nested_one_guarded(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=2)
    spawn(worker("nests", 1, 1, "--leaf-waits-for", tmp_path / "gate", "--file", tmp_path / "children"), name="top")
    (child,) = wait_for_json(tmp_path / "children")
    task.has("agent.started", child)
    kill(task.shim_of("top"))
    assert {row("top")["health"], row(child)["health"]} == {"unsupervised", "supervised"}
    assert run("cancel", "top", "--json").json["status"] == "cancelled"
    assert statuses() == {"top": "cancelled", child: "cancelled"}
