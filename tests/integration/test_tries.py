"""At stake: who redoes what has failed gets all of it, once, in its order; what counts then is the redone."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from agentctl.adapters.locks import locked
from agentctl.adapters.taskdir import Root
from agentctl.domain.worker.need import Need
from agentctl.operations.fleet.fleet import Fleet
from agentctl.operations.fleet.seen import SeenEnds
from tests.advice import follow
from tests.agent_steps import agent_world
from tests.life import wait_for_a_lock
from tests.steps import Task, held, new_task, spawn, spawn_batch, statuses
from tests.support import run, start, wait_until


def pipeline(task: Task, gate: Path) -> None:
    """Let the first of three workers fail, which takes the others along; it passes once there is a gate."""
    go = gate.with_name("go")
    first = f"until [ -e {go} ]; do sleep 0.02; done; [ -e {gate} ]"
    spawn_batch(
        [
            {"name": "build", "argv": ["sh", "-c", first]},
            {"name": "check", "argv": ["true"], "after": ["build"]},
            {"name": "ship", "argv": ["echo", "SHIPPED"], "after": ["check"]},
        ]
    )
    go.touch()
    task.ended("build", "check", "ship")


def shown() -> list[str]:
    """Return the workers that `list` shows, to a pipe."""
    return [line.split("\t")[0] for line in run("list").out.splitlines()]


@pytest.mark.follows("operations/show/further_runs.unmet_dependency: agentctl retry")
def test_a_pipeline_is_redone_from_its_middle_and_its_newest_tries_count(root: Path, tmp_path: Path) -> None:
    task = new_task()
    pipeline(task, tmp_path / "gate")
    refused = run("retry", "ship", check=False)
    assert "ship waits for check, which is failed" in refused.err
    assert statuses() == dict.fromkeys(("build", "check", "ship"), "failed")
    (tmp_path / "gate").touch()
    follow(refused, "agentctl retry build check ship")
    assert run("wait-all").code == 0
    assert task.order("agent.started")[-3:] == ["build-2", "check-2", "ship-2"]
    assert shown() == ["build-2", "check-2", "ship-2"]
    assert [line.split("\t")[0] for line in run("list", "--all").out.splitlines()] == list(statuses())
    assert run("tasks", "--json").json[0]["state"] == "completed"
    assert (run("result", "ship").out, run("result", "ship@1", check=False).code) == ("SHIPPED\n", 7)
    run("join")
    report = json.loads((task.path / "report.json").read_bytes())
    assert [one["agentInstance"] for one in report["workers"]] == ["build-2", "check-2", "ship-2"]
    rows = {row["agentInstance"]: row for row in run("list", "--json").json}
    assert {key: rows["ship"][key] for key in ("work", "nthTry", "retryOf", "supersededBy")} == {
        "work": "ship", "nthTry": 1, "retryOf": None, "supersededBy": "ship-2",
    }  # fmt: skip
    assert (rows["ship-2"]["nthTry"], rows["ship-2"]["retryOf"], rows["ship-2"]["supersededBy"]) == (2, "ship", None)
    kept = json.loads((task.agent("ship-2") / "spec.json").read_bytes())
    assert (kept["retryOf"], kept["after"]) == ("ship", ["check-2"])
    assert run("spawn", "--wait", "--after", "ship", "--name", "tell", "--", "true").code == 0, "it waits for ship-2"
    assert json.loads((task.agent("tell") / "spec.json").read_bytes())["after"] == ["ship-2"]


def test_what_waits_for_any_end_is_redone_alone(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn_batch([{"name": "a", "argv": ["false"]}, {"name": "b", "argv": ["false"], "after": ["a"], "after_any": True}])
    task.ended("a", "b")
    assert run("retry", "b", "--json").json["agentInstance"] == "b-2"
    task.ended("b-2")
    assert json.loads((task.agent("b-2") / "spec.json").read_bytes())["after"] == ["a"]


@pytest.mark.slow
def test_a_hundred_failures_are_redone_by_one_command_and_twice_starts_nothing_twice(
    root: Path, tmp_path: Path
) -> None:
    new_task(cap=4)
    gate, half = tmp_path / "gate", range(0, 200, 2)
    spawn_batch(
        {"name": f"j-{number}", "argv": ["false"] if number in half else ["true"]} for number in range(200)
    )  # fmt: skip
    assert run("wait-all", check=False).code == 7
    holds = held(gate, "holds")["argv"]
    spawn_batch([{"name": f"holds-{number}", "argv": holds} for number in range(4)])
    told = run("retry", "--failed", "--json").json
    assert {one["agentInstance"] for one in told} == {f"j-{number}-2" for number in half}
    again = run("retry", "--failed", check=False)
    assert (again.code, again.out, again.err) == (0, "", "nothing to try again: no worker is selected\n")
    gate.touch()
    assert run("wait-all", check=False).code == 7
    assert len(run("list", "--json").json) == 304
    assert run("list", "--failed").out.count("\n") == 100
    assert run("tasks", "--json").json[0]["failed"] == 100


@pytest.mark.slow
def test_those_who_redo_the_same_at_once_start_it_once(root: Path, tmp_path: Path) -> None:
    task, gate = new_task(cap=1), tmp_path / "gate"
    spawn_batch({"name": f"j-{number}", "argv": ["false"]} for number in range(20))
    run("wait-all", check=False)
    spawn_batch([held(gate, "holds")])
    with locked(Path(task.path, "tries.lock")):  # So that all have looked at the list before any begins.
        all_at_once = [start("retry", "--failed", "--json") for _ in range(4)]
        wait_for_a_lock(*(one.pid for one in all_at_once))
        assert len(statuses()) == 21
    said = [json.loads(one.communicate(timeout=60)[0]) for one in all_at_once]
    assert [one.returncode for one in all_at_once] == [0] * 4, "nothing is left to do: that is no refusal"
    started = [one["agentInstance"] for rows in said for one in rows]
    assert sorted(started) == sorted(f"j-{number}-2" for number in range(20))
    gate.touch()
    run("wait-all", check=False)
    assert len(statuses()) == 41


@pytest.mark.follows("operations/start/again._Plan._spec_of: agentctl wait")
def test_a_work_that_is_being_redone_is_not_redone_beside_that(root: Path, tmp_path: Path) -> None:
    new_task()
    spawn(["false"], "--wait", name="a", check=False)
    argv = held(tmp_path / "gate", "x")["argv"]
    spawn(["sh", "-c", f"[ -e {tmp_path / 'once'} ] || exit 1; {' '.join(argv)}"], "--wait", name="b", check=False)
    (tmp_path / "once").touch()
    run("retry", "b")
    told = run("retry", "b", check=False)
    assert (told.code, "b is being tried again already, as b-2" in told.err) == (1, True)
    refused = run("retry", "a", "b@1", check=False)
    assert (refused.code, "a-2" in statuses()) == (1, False), "none of them, if one is refused"
    (tmp_path / "gate").touch()
    follow(told, "agentctl wait b-2")


def test_what_cannot_be_redone_is_left_out_of_a_selection_and_told(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn_batch(
        [
            held(tmp_path / "gate", "first"),
            {"name": "second", "argv": ["true"], "after": ["first"]},
            {"name": "other", "argv": ["false"]},
        ]
    )
    task.ended("other")
    run("cancel", "first")
    task.ended("second")
    told = run("retry", "--failed", check=False)
    assert (told.code, told.out.split()[0]) == (1, "other-2")
    assert "left out: second waits for first, which is cancelled (agentctl retry first second" in told.err
    task.ended("other-2")


@pytest.mark.slow
def test_many_are_named_or_selected_for_every_command_that_acts_or_shows(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=2)
    spawn_batch(
        [
            {"name": "bad-1", "argv": ["sh", "-c", "echo one; exit 3"]},
            {"name": "bad-2", "argv": ["sh", "-c", "echo two; exit 4"]},
            {"name": "good", "argv": ["true"]},
        ]
    )
    task.ended("bad-1", "bad-2", "good")
    spawn_batch([held(tmp_path / "gate", name) for name in ("run-1", "run-2", "wait-1")])
    assert shown() == ["bad-1", "bad-2", "good", "run-1", "run-2", "wait-1"]
    for options, names in {
        ("--failed",): ["bad-1", "bad-2"],
        ("--status", "queued"): ["wait-1"],
        ("--agent", "command", "--status", "completed"): ["good"],
        ("--filter", "n:bad -n:one s:failed"): ["bad-2"],
    }.items():
        assert [line.split("\t")[0] for line in run("list", *options).out.splitlines()] == names
        assert [row["agentInstance"] for row in run("list", "--json", *options).json] == names
    assert run("logs", "--filter", "n:bad-1").out == "==> bad-1 <==\none\n", "a selection says whose it is"
    assert run("cancel", "--status", "blocked").err == "nothing to cancel: no worker is selected\n"
    assert run("logs", "--failed").out == "==> bad-1 <==\none\n==> bad-2 <==\ntwo\n"
    assert run("result", "bad-1", "bad-2", check=False).out == "==> bad-1 <==\none\n==> bad-2 <==\ntwo\n"
    assert [row["agentInstance"] for row in run("why", "--failed", "--json").json] == ["bad-1", "bad-2"]
    assert [row["exitCode"] for row in run("show", "bad-1", "bad-2", "--json").json] == [3, 4]
    assert run("why", "good", "--json").json["agentInstance"] == "good", "one that is named is no list"
    assert run("pause", "run-1", "run-2").out == "run-1 paused\nrun-2 paused\n"
    refused = run("pause", "run-1", "good", check=False)
    assert (refused.code, "good cannot be paused: it is over" in refused.err) == (1, True)
    assert run("unpause", "--status", "running").out == "run-1 goes on\nrun-2 goes on\n"
    assert run("cancel", "--status", "queued").out == "wait-1 cancelled\n"
    assert run("cancel", "--failed", "good", check=False).code == 2
    run("cancel", "--filter", "n:run-")
    assert set(statuses().values()) == {"failed", "completed", "cancelled"}


@pytest.mark.slow
def test_an_agent_that_goes_on_counts_for_the_one_that_it_continues(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = agent_world(tmp_path, monkeypatch)
    run("spawn", "--agent", "general", "--name", "a", "--wait", "exit 1", check=False)
    before = run("list", "--json").json[0]
    again = run("resume", "a", "say done", "--json").json["agentInstance"]
    task.ended(again)
    rows: dict[str, dict[str, Any]] = {row["agentInstance"]: row for row in run("list", "--json").json}
    assert (before["status"], rows["a"]["supersededBy"], rows[again]["continues"]) == (before["status"], again, "a")
    assert shown() == [again]


def test_views_show_what_counts_and_keep_the_earlier_tries_apart(root: Path) -> None:
    task = new_task()
    spawn(["false"], "--wait", name="a", check=False)
    spawn(["false"], "--wait", name="b", check=False)
    with Fleet(Root(root), SeenEnds(Root(root))) as fleet:
        assert needs(fleet) == {"a": Need.FAILED, "b": Need.FAILED}
        run("retry", "a")
        task.ended("a-2")
        found = wait_until(lambda: needs(fleet), accept=lambda now: now.get("a-2") is Need.FAILED, what="the new try")
        assert found == {"a": Need.EARLIER, "a-2": Need.FAILED, "b": Need.FAILED}
    assert [line.split()[0] for line in run("tree").out.splitlines()] == ["t1", "b", "a-2"]


def test_who_waits_for_their_children_keeps_one_that_somebody_else_redoes(root: Path, tmp_path: Path) -> None:
    task, go, code = new_task(cap=4), tmp_path / "go", tmp_path / "code"
    program = f"{sys.executable} -m agentctl"
    script = f"{program} spawn --name child -- false; until [ -e {go} ]; do sleep 0.02; done; {program} wait-all"
    spawn(["sh", "-c", f"{script}; echo $? > {code}"], name="parent")
    task.ended("child")
    run("retry", "child")
    task.ended("child-2")
    go.touch()
    task.ended("parent")
    assert code.read_text() == "7\n", "its child has failed: it is not left without any"


def needs(fleet: Fleet) -> dict[str, Need]:
    return {key.instance: one.need for key, one in fleet.look().workers.items()}
