"""At stake: what is removed is gone for good, its name is free for another worker, and nothing live is ever touched."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from agentctl.adapters.taskdir import Root
from agentctl.errors import Refused
from agentctl.operations.discard.removing_workers import plan_removal, remove_planned
from agentctl.operations.fleet.fleet import Fleet
from agentctl.operations.fleet.seen import SeenEnds
from tests.advice import follow
from tests.repositories import branches, new_repository
from tests.shells import define_shells, subtask_line
from tests.steps import held, new_task, row, spawn, spawn_batch, statuses
from tests.support import alike, run, start, wait_until, worker

AGENTCTL = f"{sys.executable} -m agentctl"
FAILPOINT = "AGENTCTL_FAILPOINT"


def ended(name: str, code: int = 0, *options: str) -> None:
    spawn(worker("exits", code), "--wait", *options, name=name, check=False)


def refused(*words: str) -> str:
    """Return why `rm` does nothing."""
    before = run("list", "--all", "--json").json
    done = run("rm", *words, check=False)
    assert (done.code, done.out) == (1, ""), done
    names = [one["agentInstance"] for one in run("list", "--all", "--json").json]
    assert names == [one["agentInstance"] for one in before]
    return done.err


def test_who_gets_the_name_of_a_removed_worker_is_another_worker(root: Path) -> None:
    """Tries, ends that nobody was given, keys, waits for it, its events: nothing is left of the first one."""
    task = new_task()
    ended("build", 3, "--key", "k")
    run("retry", "build")
    assert run("wait", "build", check=False).code == 7
    told = run("rm", "build")
    assert told.out == "build removed from t1\nbuild-2 removed from t1\n"
    assert not task.agent("build").exists()
    assert statuses() == {}
    assert run("wait-any", "--timeout-seconds", "5", check=False).code == 6, "its ends are nobody's"
    assert run("wait", "build", check=False).code == 3

    ended("build")
    ended("after", 0, "--after", "build")
    assert statuses() == {"build": "completed", "after": "completed"}
    assert "work" not in row("build")
    assert run("result", "build@1", check=False).code == 0
    assert run("result", "build@2", check=False).code == 3
    kinds = [json.loads(line)["type"] for line in run("events", "build", "--json").out.splitlines()]
    assert kinds == ["agent.queued", "agent.started", "agent.completed"]
    assert run("spawn", "--key", "k", "--wait", "--name", "other", "--", "true", "--json", check=False).code in (0, 2)
    assert "other" in statuses(), "the key is free"
    assert task.roster() == {"build": "completed", "after": "completed", "other": "completed"}
    assert run("wait-all").code == 0
    assert run("doctor").out.splitlines()[-1].startswith("ok")


@pytest.mark.slow
def test_one_try_alone_can_be_removed_and_the_others_stay_one_work(root: Path) -> None:
    new_task()
    ended("a", 1)
    for name in ("a", "a"):
        run("retry", name)
        run("wait", name, check=False)
    assert run("rm", "a@1", "--json").json["workers"] == ["a"]
    rows = {one["agentInstance"]: one for one in run("list", "--all", "--json").json}
    assert {name: (one["work"], one["nthTry"], one["retryOf"]) for name, one in rows.items()} == {
        "a-2": ("a-2", 1, None), "a-3": ("a-2", 2, "a-2"),
    }  # fmt: skip
    ended("a")
    assert row("a")["status"] == "completed"
    assert run("rm", "a-3").out == "a-3 removed from t1\n"
    assert run("rm", "a-2", "a").code == 0
    assert statuses() == {}


@pytest.mark.follows("operations/discard/at_rest.refusal_of_live: agentctl cancel")
def test_what_is_live_is_refused_by_name_and_nothing_is_removed(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    ended("done")
    spawn_batch([held(tmp_path / "gate", "runs"), {"name": "waits", "argv": ["true"]}])
    task.has("agent.started", "runs")
    why = refused("done", "runs")
    assert "runs is running" in why
    assert "waits is queued" in refused("waits")
    run("pause", "runs")
    assert "runs is paused" in refused("runs")
    run("unpause", "runs")
    told = run("rm", "--ended", "--json", check=False)
    assert (told.code, told.json["workers"]) == (0, ["done"])
    follow(why, "agentctl cancel runs")
    wait_until(lambda: run("rm", "runs", check=False).code == 0, what="the cancelled one to be removed")


@pytest.mark.slow
def test_a_worker_that_asks_is_live(root: Path) -> None:
    task = new_task()
    spawn(["sh", "-c", f"{AGENTCTL} interact ask --kind confirm Go"], name="asks")
    task.has("agent.blocked", "asks")
    assert "asks is blocked" in refused("asks")
    run("interact", "respond", "asks", "--id", "q1", "yes")
    task.ended("asks")
    run("rm", "asks")


@pytest.mark.slow
@pytest.mark.follows("operations/discard/removing_workers._Looks._refusal_with: agentctl cancel")
def test_what_somebody_in_the_queue_waits_for_stays(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    ended("first")
    spawn_batch([held(tmp_path / "gate", "runs")])
    task.has("agent.started", "runs")
    spawn(["true"], "--after", "first", "--queue", name="later")
    why = refused("first")
    assert "later, which is in the queue, waits for first" in why
    assert run("rm", "--ended", "--json", check=False).json["leftOut"][0]["agentInstance"] == "first"
    follow(why, "agentctl cancel later")
    run("rm", "first", "later")
    (tmp_path / "gate").touch()


@pytest.mark.follows(
    "operations/discard/removing_workers._Looks._refusal: agentctl rm --recursive",
    "operations/discard/removing_workers._Looks._refusal: rm",
)
@pytest.mark.slow
def test_what_a_worker_has_started_goes_with_it_when_that_is_said(root: Path) -> None:
    """A worker and a whole sub-task with its own worker: told by name first, as what is lost cannot be had again."""
    define_shells()
    task = new_task(cap=5, depth=3)
    marks = Path(os.environ["HOME"]) / ".config" / "agentctl" / "own"
    before = {*marks.iterdir()}
    line = f"{AGENTCTL} spawn --wait --name kid -- true; {subtask_line('below', 'exit 0')}"
    spawn(["sh", "-c", line], name="top")
    task.ended("top")
    (below,) = run("tasks", "--json").json[0]["childTaskIds"]
    why = refused("top")
    assert f"top has started kid, the sub-task {below}" in why
    follow(why, "agentctl rm top --recursive")
    assert statuses() == {}
    assert [one["taskId"] for one in run("tasks", "--json").json] == ["t1"]
    assert not (task.path.parent / below).exists()
    assert run("tasks", "--json").json[0]["childTaskIds"] == []
    assert {*marks.iterdir()} == before


@pytest.mark.slow
def test_a_worktree_goes_if_nothing_in_it_is_lost(root: Path, tmp_path: Path) -> None:
    repository = new_repository(tmp_path / "repository")
    task = new_task()
    at = ("--worktree", "--cwd", repository, "--wait")
    spawn(["true"], *at, name="clean")
    spawn(["sh", "-c", "echo x > new"], *at, name="works")
    told = run("rm", "--ended", check=False)
    assert (told.code, told.out) == (1, "clean removed from t1\n")
    assert "left out: the worktree of works holds uncommitted work" in told.err
    assert task.agent("works").exists()
    assert "agentctl/t1/clean" not in branches(repository)
    run("worktrees", "show", "works")
    (Path(run("worktrees", "list", "--json").json[0]["path"]) / "new").unlink()
    run("rm", "works")
    assert statuses() == {}


#: Where a removal of `a` is killed -> whether it was decided.
KILLED = {
    "remove.after-order": True,
    "remove.after-events": True,
    "remove.after-move": True,
    "remove.before-delete": True,
}


@pytest.mark.parametrize("failpoint", ["remove.after-order", *alike(*list(KILLED)[1:])])
def test_a_removal_that_is_killed_is_finished_by_the_next_command(root: Path, failpoint: str) -> None:
    task = new_task()
    for name in ("a", "b"):
        ended(name, 1)
    done = run("rm", "a", "b", env={FAILPOINT: failpoint}, check=False)
    assert done.code == -signal.SIGKILL
    assert statuses() == {}
    ended("a")
    assert statuses() == {"a": "completed"}
    assert not (task.path / "removal.json").exists()
    run("rm", "a")
    assert not (Path(root) / "removed").exists(), "what the killed one had left is deleted too"
    assert [one["agentInstance"] for one in task.events("agent.removed")] == ["a", "b", "a"]


@pytest.mark.follows(
    "operations/doctor/discarded.examine_removal: agentctl doctor --fix",
    "operations/doctor/discarded.examine_discarded: agentctl doctor --fix",
)
@pytest.mark.parametrize("failpoint", alike(*KILLED))
def test_doctor_finishes_a_removal_too(root: Path, failpoint: str) -> None:
    task = new_task()
    ended("a")
    run("rm", "a", env={FAILPOINT: failpoint}, check=False)
    follow(run("doctor"), "agentctl doctor --fix")
    assert not (task.path / "removal.json").exists()
    assert not (Path(root) / "removed").exists()
    assert not task.agent("a").exists()
    assert "ok: nothing is wrong" in run("doctor").out


@pytest.mark.slow
@pytest.mark.follows("operations/where/removal_order._HINT: agentctl doctor --fix")
def test_a_decision_of_somebody_else_is_not_carried_out(root: Path) -> None:
    """A clone may bring one; and of one's own, what cannot be understood is reported."""
    task = new_task()
    ended("a")
    (task.path / "removal.json").write_text('{"id": "x", "workers": ["../../t1"], "tasks": [], "folders": []}')
    assert statuses() == {"a": "completed"}
    said = run("doctor", check=False)
    assert "does not say who is to be removed" in said.out
    follow(said, "agentctl doctor --fix")
    assert not (task.path / "removal.json").exists()
    order = {"id": "x", "by": "user", "workers": ["a"], "tasks": [], "folders": ["a"]}
    (task.path / "removal.json").write_text(json.dumps(order))
    (task.path / "origin").write_text("another\n")
    assert run("list", "--json").json[0]["agentInstance"] == "a"
    assert task.agent("a").exists()


@pytest.mark.follows("operations/discard/removing_workers._Looks._refusal: agentctl cancel")
@pytest.mark.slow
def test_what_still_runs_below_a_worker_keeps_it(root: Path, tmp_path: Path) -> None:
    task = new_task()
    config = (task.path / "task.yaml").read_text().replace("config: {", "config: {childrenAtEnd: leave, ")
    (task.path / "task.yaml").write_text(config)
    gate = " ".join(worker("exits", 0, "--after-file", tmp_path / "gate"))
    spawn(["sh", "-c", f"{AGENTCTL} spawn --name kid -- {gate}"], "--wait", name="top")
    why = refused("top")
    assert "t1/kid, which top has started, has not ended" in why
    follow(why, "agentctl cancel kid")
    run("rm", "top", "--recursive")
    assert statuses() == {}


@pytest.mark.slow
@pytest.mark.follows("operations/discard/at_rest._DOCTOR: agentctl doctor --fix")
def test_what_a_killed_spawn_has_left_is_no_worker(root: Path) -> None:
    task = new_task()
    run("spawn", "--name", "a", "--", "true", env={FAILPOINT: "spawn.after-spec"}, check=False)
    follow(refused("a"), "agentctl doctor --fix")
    assert not task.agent("a").exists()


def test_a_start_that_builds_on_a_worker_that_is_removed_meanwhile_is_refused(root: Path) -> None:
    new_task()
    ended("a")
    late = start(
        "spawn", "--after", "a", "--queue", "--name", "b", "--", "true", env={FAILPOINT: "spawn.after-spec:stop"}
    )
    wait_until(lambda: Path(f"/proc/{late.pid}/stat").read_text().split(") ")[1][0] == "T", what="the spawn to stand")
    run("rm", "a")
    late.send_signal(signal.SIGCONT)
    _, said = late.communicate(timeout=20)
    assert late.returncode == 1
    assert "a, on which b builds, was removed meanwhile" in said
    assert statuses() == {}


@pytest.mark.slow
def test_what_is_waited_for_since_it_was_looked_at_stays(root: Path) -> None:
    task = Root(root).task(new_task().path.name)
    ended("a")
    ended("b")
    asked, selected = plan_removal(task, ["a", "b"]), plan_removal(task, ["a", "b"], as_far_as_possible=True)
    run("pause")
    spawn(["true"], "--after", "a", name="later")
    with pytest.raises(Refused, match="later, which is in the queue, waits for a"):
        remove_planned(asked)
    assert set(statuses()) == {"a", "b", "later"}
    done = remove_planned(selected, as_far_as_possible=True)
    assert (list(done.workers), list(done.left_out)) == (["b"], ["a"])
    assert set(statuses()) == {"a", "later"}
    run("cancel", "later")


def test_a_worker_may_not_remove_workers(root: Path) -> None:
    """What it had used up would no longer count against its limits."""
    task = new_task()
    ended("a")
    spawn(["sh", "-c", f"{AGENTCTL} rm a"], name="b")
    task.ended("b")
    assert "a worker may not remove workers" in (task.agent("b") / "stderr.log").read_text()
    assert "a" in statuses()


@pytest.mark.slow
def test_what_watches_sees_the_new_worker_of_an_old_name(root: Path) -> None:
    new_task()
    ended("a", 1)
    ended("b")
    with Fleet(Root(root), SeenEnds(Root(root))) as fleet:
        assert {key.instance for key in fleet.look().workers} == {"a", "b"}
        run("rm", "--ended")
        wait_until(lambda: not fleet.look().workers, what="both to vanish")
        assert fleet.look().tasks["t1"].totals.failed == 0
        ended("a")
        wait_until(lambda: [one.row["status"] for one in fleet.look().workers.values()], accept=["completed"].__eq__)


@pytest.mark.slow
def test_three_hundred_are_removed_in_one_go(root: Path) -> None:
    task = new_task(cap=20)
    spawn_batch([{"name": f"n{number}", "argv": ["true"]} for number in range(300)])
    run("wait-all", timeout=120)
    told = run("rm", "--ended", "--json", timeout=60).json
    assert len(told["workers"]) == 300
    assert list((task.path / "agents").iterdir()) == []
    assert len({one["payload"]["removal"] for one in task.events("agent.removed")}) == 1
    assert statuses() == {}
    ended("n7")
    assert statuses() == {"n7": "completed"}
