"""At stake: what a worker makes in a root of its own makes it nobody else, also after an honest start there."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import psutil
import pytest

from tests.life import Known, known, leader_of, lives, read, says_ready, set_config
from tests.shells import AGENTCTL
from tests.steps import Task, kill, new_task, spawn
from tests.support import PROGRAM, alike, run, wait_for_json, wait_until, worker

#: In a root of its own, then.
HONEST = "{agentctl} new Own --id x --root {own}; {agentctl} spawn --wait --root {own} --task x --name real -- true; "


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Return the root that a worker makes for itself."""
    return tmp_path / "own"


def after_an_honest_start(own: Path) -> str:
    """Return the line of a worker that makes a root of its own and starts a worker in it."""
    return HONEST.format(agentctl=AGENTCTL, own=own)


def pretends(own: Path, *argv: str) -> str:
    """Return the line of a worker that runs a command below an impostor, or only that."""
    return shlex.join(worker("pretends", "shim", own, *argv))


# -- it is the worker that it is ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "environ", [{"PRETENDS_WITHOUT_SPEC": "1"}, *alike({}, {"PRETENDS_DEPTH": "5"})], ids=["no spec", "0", "5"]
)
def test_what_it_starts_and_does_is_the_workers(root: Path, own: Path, environ: dict[str, str]) -> None:
    task = new_task(cap=4, grace=0.05, depth=1)
    spawn(worker("sleeps", 60), name="other")
    here = f"--root {root} --task t1"
    does = f"{AGENTCTL} cancel other {here}; {AGENTCTL} spawn {here} --name deep -- sleep 60; sleep 60"
    script = after_an_honest_start(own) + pretends(own, "sh", "-c", does)
    spawn(["sh", "-c", script], *(f"--env={key}={value}" for key, value in environ.items()), name="a")
    task.has("agent.started", "deep")
    impostor = known(wait_for_json(own / "pid"))
    assert task.exit("other") is not None
    assert read(task.agent("other") / "cancel.json")["by"] == "a"
    spec = read(task.agent("deep") / "spec.json")
    assert (spec["parent"], spec["depth"]) == ("a", 1)
    run("cancel", "a")
    assert not lives(impostor)
    assert (task.exit("deep") or {})["status"] == "cancelled"


def test_who_says_to_be_of_a_tree_of_its_own_making_is_held_to_where_it_is(root: Path, own: Path) -> None:
    """Neither deeper nor shallower: the limits of that other tree are its own."""
    task = new_task(depth=1)
    run("new", "Own", "--id", "x", "--max-depth", "9", "--root", own)
    there = Task(own / "tasks" / "x")
    spawn(["true"], "--wait", "--root", own, "--task", "x", name="boss")
    boss = there.agent("boss")
    spec = read(boss / "spec.json")
    (boss / "spec.json").write_text(json.dumps({**spec, "depth": 5}))
    (boss / "exit.json").unlink()
    says = f"AGENTCTL_ROOT={own} AGENTCTL_TASK=x AGENTCTL_INSTANCE=boss AGENTCTL_AGENT_DIR={boss}"
    spawn(["sh", "-c", f"env {says} {AGENTCTL} spawn --root {own} --task x --name deep -- true"], "--wait", name="a")
    spec = read(there.agent("deep") / "spec.json")
    assert (spec["parent"], spec["parentTask"], spec["depth"]) == ("a", str(task.path), 1)
    there.ended("deep")


# -- it is swept -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["shim", *alike("mark")])
def test_it_is_swept(root: Path, own: Path, kind: str) -> None:
    task = new_task(grace=0.05)
    script = after_an_honest_start(own) + shlex.join(worker("pretends", kind, own)) + " & wait"
    spawn(["sh", "-c", script], name="a")
    impostor = known(wait_for_json(own / "pid"))
    run("cancel", "a")
    assert not lives(impostor)
    assert task.exit("a") is not None


# -- who is spared -----------------------------------------------------------------------------------------------------


@pytest.fixture
def there(root: Path, tmp_path: Path) -> Task:
    """Make a task in another root, with one slot."""
    run("new", "Elsewhere", "--id", "x", "--max-concurrent", "1", "--root", tmp_path / "else")
    return Task(tmp_path / "else" / "tasks" / "x")


def test_a_shim_that_such_a_shim_has_started_outlives_the_worker_above(there: Task, tmp_path: Path) -> None:
    """A worker's wait keeps a queue of another root going, whose shims start others and end before those."""
    task = new_task(grace=0.05)
    where = ("--root", str(there.path.parent.parent), "--task", "x")
    spawn(worker("sleeps", 60), *where, name="first")
    for name in ("one", "two", "three"):
        spawn(worker("exits", 0, "--after-file", tmp_path / name), *where, "--queue", name=name)
    kill(there.shim_of("first"), leader_of(there, "first").pid)
    spawn(["sh", "-c", shlex.join([*PROGRAM, "wait", "one", *where]) + "; sleep 60"], name="a")
    there.has("agent.started", "one")
    set_config(there, maxConcurrentAgents=2)
    run("list", *where)  # Whoever reads task.yaml tells the shims.
    first = known(there.shim_of("one"))
    (tmp_path / "one").touch()
    there.has("agent.started", "three")
    (tmp_path / "two").touch()
    there.ended("two")
    wait_until(lambda: lives(first), accept=lambda left: not left, what="the first shim to end")
    later = there.shim_of("three")
    assert known(int(task.shim_of("a"))).pid in {one.pid for one in psutil.Process(later).parents()}
    run("cancel", "a")
    (tmp_path / "three").touch()
    there.ended("three")
    assert (there.exit("three") or {})["status"] == "completed"
    assert not gone(task.path / "kin"), "who is gone is forgotten"


def gone(notes: Path) -> list[Path]:
    """Return the notes of shims that are not there, but for the last ones: they are forgotten with the next note."""
    found = [(file, read(file)) for file in sorted(notes.iterdir(), key=lambda file: file.stat().st_mtime_ns)[:-2]]
    return [file for file, noted in found if not lives(Known(noted["pid"], noted["start"]))]


def test_what_a_child_in_another_root_was_to_leave_behind_lives_on(there: Task, tmp_path: Path) -> None:
    task = new_task(grace=0.05)
    left = tmp_path / "left"
    leaves = f"setsid sleep 60 & echo $! > {left}.new; mv {left}.new {left}"
    where = f"--root {there.path.parent.parent} --task x"
    line = f"{AGENTCTL} spawn --wait --keep-children {where} --name child -- sh -c {shlex.quote(leaves)}"
    spawn(["sh", "-c", f"{line}; echo ready; sleep 60"], name="a")
    says_ready(task, "a")
    kept = known(wait_for_json(left))
    run("cancel", "a")
    assert lives(kept)
    kill(kept.pid)
