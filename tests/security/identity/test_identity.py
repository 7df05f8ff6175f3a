"""At stake: no file that a worker forges makes agentctl signal a stranger, or takes a process out of its worker."""

from __future__ import annotations

import json
import os
import shlex
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from agentctl.operations.where.lineage import shown_caller_of
from tests.life import Known, forge, is_settled, kill_shims, known, leader_of, lives, orphan, read, says_ready, state_of
from tests.moments import at_openings
from tests.shells import AGENTCTL
from tests.steps import Task, kill, new_task, row, spawn
from tests.strangers import Strangers
from tests.support import PROGRAM, alike, remove, run, wait_for_json, wait_until, worker


def whole(process: Known) -> dict[str, int]:
    """Return what names a process of this machine in a worker.json that is forged."""
    return {"pid": process.pid, "start": process.start}


# -- a record that names somebody else ---------------------------------------------------------------------------------


@pytest.mark.parametrize("changes", [{}, *alike({"cookie": "0"}, {"attempt": 2})], ids=["cookie", "none", "attempt"])
def test_a_session_that_a_record_names_whole_is_left_alone(strangers: Strangers, changes: dict[str, Any]) -> None:
    task = new_task(cap=1, grace=0.05)
    leader = orphan(task, "a")
    forge(task.agent("a") / "worker.json", **whole(strangers.leader), **changes)
    assert row("a")["health"] == "unsupervised"
    assert run("cancel", "a", "--json").json["cancelled"] is True
    strangers.are_untouched()
    assert not lives(leader), "what carries its folder was found all the same"
    assert is_settled(task, "a")["status"] == "cancelled"


def test_a_worker_that_is_gone_is_not_alive_by_a_strangers_name(strangers: Strangers) -> None:
    """No wait waits for the stranger, or takes its exit for the worker's, and its slot is free."""
    task = new_task(cap=1)
    leader = orphan(task, "a")
    kill(leader.pid)
    forge(task.agent("a") / "worker.json", **whole(strangers.leader))
    assert run("wait", "a", check=False).code == 7
    assert is_settled(task, "a")["reason"] == "lost"
    assert spawn(["true"], "--wait", name="b").code == 0
    strangers.are_untouched()


def test_another_workers_cookie_does_not_make_its_processes_ones_own(root: Path) -> None:
    task = new_task(cap=2, grace=0.05)
    leader = orphan(task, "a")
    spawn(worker("sleeps", 60), name="b")
    says_ready(task, "b")
    forge(task.agent("a") / "worker.json", cookie=read(task.agent("b") / "worker.json")["cookie"])
    run("cancel", "a")
    assert not lives(leader)
    assert row("b")["health"] == "supervised"
    assert lives(leader_of(task, "b"))
    run("cancel", "b")


def test_a_forged_child_in_another_root_makes_no_cancel_signal_a_stranger(strangers: Strangers, tmp_path: Path) -> None:
    """A cancel goes down to whoever a worker's folder names; there, too, the process must be that worker's."""
    task = new_task(grace=0.05)
    spawn(worker("sleeps", 60), name="a")
    says_ready(task, "a")
    child = tmp_path / "else" / "tasks" / "x" / "agents" / "child"
    child.mkdir(parents=True)
    spec = {**read(task.agent("a") / "spec.json"), "parent": "a", "parentTask": str(task.path), "depth": 1}
    (child / "spec.json").write_text(json.dumps(spec))
    (child / "worker.json").write_text(json.dumps({**read(task.agent("a") / "worker.json"), **whole(strangers.leader)}))
    (task.agent("a") / "children").mkdir()
    (task.agent("a") / "children" / "x.child.1-1").write_text(json.dumps({"path": str(child)}))
    assert run("cancel", "a", "--json").json["status"] == "cancelled"
    strangers.are_untouched()


def test_a_stopped_stranger_that_shim_json_names_is_not_continued(strangers: Strangers) -> None:
    task = new_task(grace=0.05)
    spawn(worker("sleeps", 60), name="a")
    says_ready(task, "a")
    strangers.stop()
    shim = task.shim_of("a")
    forge(task.agent("a") / "shim.json", **whole(strangers.leader))
    os.kill(shim, signal.SIGSTOP)
    wait_until(lambda: state_of(shim), accept=lambda state: state == "T", what="the shim to stand")
    run("cancel", "a")  # The shim is found by its place, and continued.
    strangers.are_untouched("T")
    assert is_settled(task, "a")["status"] == "cancelled"


def test_a_stranger_that_a_slot_names_is_no_shim(strangers: Strangers) -> None:
    task = new_task(cap=1)
    leader = orphan(task, "a")
    kill(leader.pid)
    forge(task.path / "slots" / "1", shim={**read(task.agent("a") / "shim.json"), **whole(strangers.leader)})
    remove(task.agent("a"))
    assert row("a")["status"] == "failed"
    strangers.are_untouched()


@pytest.mark.parametrize("name", ["\0", *alike("../../t1/agents/a", 7)])
def test_names_that_are_none_lead_nowhere_and_stop_no_shim(root: Path, name: object) -> None:
    task = new_task(cap=2, grace=0.05)
    spawn(worker("sleeps", 60), name="a")
    says_ready(task, "a")
    for folder in (task.path / "kin", task.agent("a") / "children"):
        folder.mkdir()
    (task.path / "slots" / "7").write_text(json.dumps({"taskId": name, "instance": name, "shim": None}))
    (task.path / "kin" / "1-1").write_text(json.dumps({"path": f"/{name}"}))
    (task.agent("a") / "children" / "x.child.1-1").write_text(json.dumps({"path": f"/{name}"}))
    assert row("a")["health"] == "supervised"
    assert spawn(["true"], "--wait", name="b").code == 0
    assert run("cancel", "a", "--json").json["status"] == "cancelled"
    assert not (task.path / "shim.log").exists()


# -- what is a worker's all the same -----------------------------------------------------------------------------------


@pytest.mark.parametrize("attempt", [1, 2])
def test_a_first_process_that_carries_nothing_any_more_is_known_by_the_log(
    root: Path, tmp_path: Path, attempt: int
) -> None:
    task = new_task(grace=0.05)
    script = f"echo run >> {tmp_path / 'runs'}; test $(wc -l < {tmp_path / 'runs'}) -lt {attempt} && exit 1"
    bare = shlex.join(["env", "-i", *worker("sleeps", 60)])
    retries = ("--retries", "1", "--retry-delay-seconds", "0.01")
    spawn(["sh", "-c", f"{script}; exec {bare}"], *retries, name="a")
    says_ready(task, "a")
    leader = leader_of(task, "a")
    assert row("a")["pid"] == leader.pid
    kill_shims(task, "a")
    assert row("a")["health"] == "unsupervised"
    run("cancel", "a")
    assert not lives(leader)
    assert is_settled(task, "a")["status"] == "cancelled"


def test_what_is_left_of_its_session_is_known_by_the_log(root: Path, tmp_path: Path) -> None:
    task = new_task(grace=0.05)
    left = tmp_path / "left"
    bare = f"env -i sh -c 'echo $$ > {left}.new; mv {left}.new {left}; exec sleep 60'"
    spawn(["sh", "-c", f"{bare} & echo ready; wait"], name="a")
    says_ready(task, "a")
    child, leader = known(wait_for_json(left)), leader_of(task, "a")
    kill_shims(task, "a")
    kill(leader.pid)
    assert row("a")["health"] == "unsupervised"
    run("cancel", "a")
    assert not lives(child)


# -- an impostor above, and below --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["shim", *alike("mark")])
def test_an_impostor_of_another_root_makes_no_start_shallower(root: Path, tmp_path: Path, kind: str) -> None:
    task = new_task(cap=3, depth=1)
    pretends = [*worker("pretends", kind, tmp_path / "own"), *PROGRAM, "spawn", "--name", "deep", "--", "true"]
    spawn(["sh", "-c", f"{AGENTCTL} spawn --wait --name middle -- {shlex.join(pretends)}"], name="top")
    run("wait", "top", check=False)
    said = (task.agent("middle") / "stderr.log").read_text()
    assert "Maximum subagent depth exceeded: middle is at depth 1, maxDepth is 1" in said
    assert not task.agent("deep").exists()


@pytest.mark.parametrize("kind", ["shim", "mark"])
@pytest.mark.parametrize("supervised", [True, *alike(False)])
def test_an_impostor_of_another_root_is_swept(root: Path, tmp_path: Path, kind: str, supervised: bool) -> None:
    task = new_task(grace=0.05)
    pretends = shlex.join(worker("pretends", kind, tmp_path / "own"))
    spawn(["sh", "-c", f"{pretends} & wait"], name="a")
    impostor = known(wait_for_json(tmp_path / "own" / "pid"))
    if not supervised:
        kill_shims(task, "a")
    run("cancel", "a")
    assert not lives(impostor)
    assert is_settled(task, "a")["status"] == "cancelled"


def test_a_mark_of_a_worker_that_an_impostor_has_made_spares_nothing(root: Path, tmp_path: Path) -> None:
    task = new_task(grace=0.05)
    pretends = worker("pretends", "mark", tmp_path / "own", *worker("ignores_term", "--int"))
    spawn(["sh", "-c", f"{shlex.join(pretends)} & wait"], name="a")
    says_ready(task, "a")
    (marked,) = psutil.Process(wait_for_json(tmp_path / "own" / "pid")).children()
    hidden = known(marked.pid)
    run("cancel", "a")
    assert not lives(hidden)
    assert is_settled(task, "a")["status"] == "cancelled"


@pytest.mark.parametrize("lives_on", [True, False], ids=["of-one-that-lives", "of-one-that-has-ended"])
def test_another_workers_mark_spares_nothing(root: Path, tmp_path: Path, lives_on: bool) -> None:
    task = new_task(cap=2, grace=0.05)
    gate = tmp_path / "gate"
    spawn(worker("exits", 0, "--after-file", gate), name="other")
    mark = f"AGENTCTL_COOKIE={read(task.agent('other') / 'worker.json')['cookie']}"
    if not lives_on:
        gate.touch()
        task.ended("other")
    marked = f"env {mark} AGENTCTL_AGENT_DIR={task.agent('other')} {shlex.join(worker('ignores_term', '--int'))}"
    spawn(
        [
            "sh",
            "-c",
            f"setsid {marked} & echo $! > {tmp_path / 'draft'}; mv {tmp_path / 'draft'} {tmp_path / 'pid'}; wait",
        ],
        name="a",
    )
    says_ready(task, "a")
    hidden = known(wait_for_json(tmp_path / "pid"))
    run("cancel", "a")
    assert not lives(hidden)
    gate.touch()
    task.ended("other")


def test_a_process_whose_parent_ends_while_it_is_looked_up_is_still_the_workers(root: Path, tmp_path: Path) -> None:
    """It has none of the worker's variables: only those above it show whose it is."""
    task, low = new_task(grace=0.05), tmp_path / "low"
    below = f"setsid sleep 60 & echo $! > {low}.new; mv {low}.new {low}; wait"
    spawn(["sh", "-c", f"env -i {shlex.join(['sh', '-c', below])}; sleep 60"], name="a")
    lowest = wait_for_json(low)
    parent = known(psutil.Process(lowest).ppid())
    with at_openings(f"/proc/{parent.pid}/stat", [lambda: kill(parent.pid)]):
        caller = shown_caller_of(lowest)
    assert not lives(parent)
    assert caller is not None
    assert caller.instance == "a"
    run("cancel", "a")
    assert task.exit("a") is not None


# -- who is spared ----------------------------------------------------------------------------------------------------


@pytest.fixture
def there(root: Path, tmp_path: Path) -> Task:
    """Make a task in another root, with one slot."""
    run("new", "Elsewhere", "--id", "x", "--max-concurrent", "1", "--root", tmp_path / "else")
    return Task(tmp_path / "else" / "tasks" / "x")


@pytest.mark.slow
def test_a_shim_that_a_workers_wait_starts_in_another_root_outlives_it(there: Task, tmp_path: Path) -> None:
    """It guards nobody of the worker's: the wait only kept a queue going that stood."""
    task, gate = new_task(grace=0.05), tmp_path / "gate"
    where = ("--root", str(there.path.parent.parent), "--task", "x")
    spawn(worker("sleeps", 60), *where, name="first")
    spawn(worker("exits", 0, "--after-file", gate), *where, "--queue", name="next")
    kill(there.shim_of("first"), leader_of(there, "first").pid)
    spawn(["sh", "-c", shlex.join([*PROGRAM, "wait", "next", *where])], name="a")
    there.has("agent.started", "next")
    shim = there.shim_of("next")
    assert known(int(task.shim_of("a"))).pid in {one.pid for one in psutil.Process(shim).parents()}
    run("cancel", "a")
    gate.touch()
    there.ended("next")
    assert (there.exit("next") or {})["status"] == "completed"


@pytest.mark.slow
def test_who_cancels_in_another_root_for_a_worker_outlives_it(there: Task, tmp_path: Path) -> None:
    task = new_task(grace=0.05)
    where = ("--root", str(there.path.parent.parent), "--task", "x")
    spawn(worker("ignores_term", "--int"), *where, "--grace-seconds", "0.5", name="deaf")
    says_ready(there, "deaf")
    leader = leader_of(there, "deaf")
    kill_shims(there, "deaf")
    spawn(["sh", "-c", shlex.join([*PROGRAM, "cancel", "deaf", "--no-wait", *where]) + "; sleep 60"], name="a")
    there.has("agent.cancel_requested", "deaf")
    run("cancel", "a")
    there.ended("deaf")
    assert (there.exit("deaf") or {})["status"] == "cancelled"
    assert not lives(leader)
    assert task.exit("a") is not None
