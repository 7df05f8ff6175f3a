"""At stake: a worker that starts others in another root or tree is their parent, as in its own tree."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from agentctl.adapters.locks import try_lock
from agentctl.adapters.treedir import tree_at
from agentctl.operations.where.lineage import queues_locked
from tests.life import leader_of, lives, set_config
from tests.shells import AGENTCTL
from tests.steps import Task, new_task, row, spawn
from tests.support import alike, run, wait_until


@pytest.fixture
def here(root: Path) -> Task:
    """Make a task in which workers may nest."""
    return new_task(cap=3, depth=3)


@pytest.fixture
def there(here: Task, tmp_path: Path) -> Task:
    """Make a task of the same name in another root."""
    run("new", "Elsewhere", "--id", "t1", "--max-depth", "3", "--root", tmp_path / "else")
    return Task(tmp_path / "else" / "tasks" / "t1")


def starts(where: Task, name: str, script: str) -> str:
    """Return a shell line that starts a worker in another root."""
    root = where.path.parent.parent
    return f"{AGENTCTL} spawn --root {root} --task t1 --queue --name {name} -- sh -c {shlex.quote(script)}"


@pytest.fixture
def hold(tmp_path: Path) -> str:
    """Return a shell line that waits until the file `gate` exists."""
    return f"while ! [ -e {tmp_path / 'gate'} ]; do sleep 0.02; done"


def test_a_cancel_goes_down_into_another_root_and_back(here: Task, there: Task, hold: str) -> None:
    """From here to there, and from there back here; both roots have a task and a worker with the same names."""
    leaf = starts(here, "leaf", hold)
    spawn(["sh", "-c", f"{starts(there, 'a', f'{leaf}; {hold}')}; {hold}"], name="a")
    here.has("agent.started", "leaf")
    processes = [leader_of(here, "a"), leader_of(there, "a"), leader_of(here, "leaf")]
    told = run("cancel", "a", "--json").json
    assert (told["agentInstance"], told["status"]) == ("a", "cancelled")
    below = [(one["agentInstance"], one.get("taskId"), one["status"]) for one in told["withIt"]]
    assert sorted(below) == [("a", str(there.path), "cancelled"), ("leaf", None, "cancelled")]
    assert not any(lives(process) for process in processes)
    ends = [(task.exit(name) or {})["endedAt"] for task, name in ((here, "leaf"), (there, "a"), (here, "a"))]
    assert ends == sorted(ends)


def test_a_step_about_a_worker_of_another_root_names_that_root(here: Task, there: Task) -> None:
    """Both tasks have the same id, and both workers the same name."""
    root = there.path.parent.parent
    waits = f"{AGENTCTL} wait a --task t1 --root {root}"
    spawn(["sh", "-c", f"{starts(there, 'a', 'exit 3')}; {waits}; exit 1"], "--wait", name="a", check=False)
    steps = [one["step"] for one in run("why", "a", "--json").json["waysOut"] if one["step"]["verb"] == "logs"]
    roots = {one.get("root") for one in steps}
    assert roots == {None, str(root)}, steps


@pytest.mark.parametrize("policy", ["wait", *alike("cancel", "leave")])
def test_children_in_another_root_outlive_their_parent_as_the_task_says(
    here: Task, there: Task, hold: str, tmp_path: Path, policy: str
) -> None:
    set_config(here, childrenAtEnd=policy, graceSeconds=0.2)
    spawn(["sh", "-c", starts(there, "child", hold)], name="parent")
    if policy == "wait":
        wait_until(lambda: row("parent")["awaitsChildren"], what="the parent to await its children")
    else:
        here.ended("parent")
    if policy != "cancel":
        assert there.exit("child") is None
        (tmp_path / "gate").touch()
    here.ended("parent")
    there.ended("child")
    assert (here.exit("parent") or {})["uncollected"] == [f"{there.path}/child"]
    assert (there.exit("child") or {})["status"] == ("cancelled" if policy == "cancel" else "completed")


@pytest.mark.slow
def test_a_pause_goes_down_into_another_root(here: Task, there: Task, hold: str, tmp_path: Path) -> None:
    spawn(["sh", "-c", f"{starts(there, 'child', hold)}; {hold}"], name="parent")
    there.has("agent.started", "child")
    assert run("pause", "parent", "--json").json["withIt"] == [f"{there.path}/child"]
    assert len(there.events("agent.paused", of="child")) == 1
    run("unpause", "parent")
    (tmp_path / "gate").touch()
    there.ended("child")
    here.ended("parent")


def test_the_lock_behind_which_a_cancel_looks_is_held_in_both_trees(here: Task, there: Task, tmp_path: Path) -> None:
    own, tree = tree_at(str(here.path)), tree_at(str(there.path))
    locks = [tree.queue_lock, own.queue_lock]
    with queues_locked(tree, own):
        assert [try_lock(lock) for lock in locks] == [None, None]
    (tmp_path / "link").symlink_to(here.path)
    with queues_locked(tree_at(str(tmp_path / "link")), own):  # Two paths to one lock: it is taken once.
        assert try_lock(own.queue_lock) is None


@pytest.mark.slow
def test_two_parents_that_start_something_in_each_others_root_are_not_in_each_others_way(
    here: Task, there: Task
) -> None:
    many = "for n in 1 2 3 4; do {}; done"
    cross = {name: many.format(starts(where, f"{name}-$n", "true")) for name, where in (("x", there), ("y", here))}
    spawn(["sh", "-c", cross["x"]], name="x")
    spawn(["sh", "-c", cross["y"]], "--root", there.path.parent.parent, name="y")
    there.ended("y", *(f"x-{n}" for n in range(1, 5)))
    here.ended("x", *(f"y-{n}" for n in range(1, 5)))


def test_who_goes_through_a_second_root_into_a_third_is_held_to_the_depth_of_the_first(
    here: Task, there: Task, tmp_path: Path
) -> None:
    set_config(here, maxDepth=1)
    run("new", "Further", "--id", "t1", "--max-depth", "3", "--root", tmp_path / "further")
    further = Task(tmp_path / "further" / "tasks" / "t1")
    spawn(["sh", "-c", starts(there, "a", starts(further, "b", "true"))], name="a")
    there.ended("a")
    assert "at depth 1, maxDepth is 1" in (there.agent("a") / "stderr.log").read_text(encoding="utf-8")
    assert not further.agent("b").exists()
