"""At stake: `--after` starts a worker exactly when those before it have ended as required; none waits for ever."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.agent_steps import agent_world
from tests.steps import held, kill, new_task, row, spawn, spawn_batch, statuses
from tests.support import remove, run, wait_until, worker


def test_after_starts_once_all_have_completed(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn_batch(
        [
            held(tmp_path / "a", "a"),
            held(tmp_path / "b", "b"),
            {"name": "c", "argv": ["true"], "after": ["a", "b"]},
        ]
    )
    (tmp_path / "a").touch()
    task.ended("a")
    run("wait-any", "c", "--timeout-seconds", "0", check=False)
    assert statuses() == {"a": "completed", "b": "running", "c": "queued"}
    (tmp_path / "b").touch()
    task.ended("c")
    assert task.order("agent.started")[-1] == "c"


def test_after_needs_no_queue_option_and_holds_back_nobody_else(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=2)
    spawn_batch([held(tmp_path / "a", "a")])
    assert spawn(["true"], "--after", "a", "--priority", "9", name="b").json["status"] == "queued"
    assert spawn(["true"], name="c").json["status"] == "running"
    task.ended("c")
    (tmp_path / "a").touch()
    task.ended("a", "b")


def test_what_a_command_needs_may_be_made_by_those_before_it(root: Path, tmp_path: Path) -> None:
    """Its program, and the folder that it runs in: what is still not there at its start is named."""
    task, made = new_task(), tmp_path / "made"
    writes = f"mkdir {made} && printf '#!/bin/sh\\nexit 0\\n' > {made}/tool && chmod +x {made}/tool"
    rows: list[dict[str, Any]] = [
        held(tmp_path / "gate", "gate"),
        {"name": "deps", "argv": ["sh", "-c", writes], "after": ["gate"]},
        {"name": "by-path", "argv": [str(made / "tool")], "after": ["deps"]},
        {"name": "in-folder", "argv": ["./tool"], "cwd": str(made), "after": ["deps"]},
        {"name": "no-program", "argv": [str(made / "other")], "after": ["deps"]},
        {"name": "no-folder", "argv": ["true"], "cwd": str(tmp_path / "other"), "after": ["deps"]},
    ]
    warned = {one["agentInstance"] for one in spawn_batch(rows) if "so far, " in " ".join(one.get("warnings", ()))}
    assert warned == {"by-path", "in-folder", "no-program", "no-folder"}
    (tmp_path / "gate").touch()
    task.ended(*(one["name"] for one in rows))
    assert statuses() == dict.fromkeys(("gate", "deps", "by-path", "in-folder"), "completed") | dict.fromkeys(
        ("no-program", "no-folder"), "failed"
    )
    for name, missing in (("no-program", made / "other"), ("no-folder", tmp_path / "other")):
        end = task.exit(name) or {}
        assert (end["reason"], end["message"]) == ("not_started", f"{missing}: No such file or directory")


def test_what_nobody_will_make_is_refused_at_once(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is waited for; those that are have ended; and the folder of an agent, which is looked at before."""
    task = agent_world(tmp_path, monkeypatch)
    spawn_batch([{"name": "deps", "argv": ["true"]}, held(tmp_path / "gate", "gate")])
    task.ended("deps")
    for options in ((), ("--queue",), ("--after", "deps")):
        told = spawn([str(tmp_path / "tool")], *options, name="x", check=False)
        assert (told.code, "there is no program" in told.err) == (2, True)
    told = run("spawn", "--agent", "general", "--cwd", tmp_path / "other", "--after", "gate", "Do it", check=False)
    assert (told.code, f"{tmp_path / 'other'} does not exist" in told.err) == (2, True)
    assert not task.agent("x").exists()
    (tmp_path / "gate").touch()
    task.ended("gate")


def test_a_failure_fails_all_that_wait_for_it_and_those_behind_them(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn_batch(
        [
            {"name": "a", "argv": worker("exits", 3, "--after-file", tmp_path / "a")},
            {"name": "b", "argv": ["true"], "after": ["a"]},
            {"name": "c", "argv": ["true"], "after": ["b"]},
            {"name": "d", "argv": ["true"], "after": ["c"], "after_any": True},
        ]
    )
    (tmp_path / "a").touch()
    task.ended("a", "b", "c", "d")
    assert statuses() == {"a": "failed", "b": "failed", "c": "failed", "d": "completed"}
    assert [row(name)["reason"] for name in "bc"] == ["dependency", "dependency"]
    assert [(task.exit(name) or {})["message"] for name in "bc"] == [
        "a dependency was not met: a failed",
        "a dependency was not met: b failed",
    ]
    assert task.order("agent.started") == ["a", "d"]
    assert task.tickets() == []
    wait_until(task.roster, accept=lambda rows: rows == {"a": "failed", "b": "failed", "c": "failed", "d": "completed"})


def test_a_cancelled_dependency_is_no_completed_one(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    spawn_batch(
        [held(tmp_path / "x", "x"), {"name": "a", "argv": ["true"]}, {"name": "b", "argv": ["true"], "after": ["a"]}]
    )
    run("cancel", "a")
    task.ended("b")
    assert (task.exit("b") or {})["reason"] == "dependency"
    (tmp_path / "x").touch()
    task.ended("x")
    assert statuses() == {"x": "completed", "a": "cancelled", "b": "failed"}
    wait_until(task.roster, accept=lambda rows: rows == {"x": "completed", "a": "failed", "b": "failed"})


@pytest.mark.slow
def test_a_lost_dependency_fails_who_waits_for_it(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=2)
    spawn_batch([held(tmp_path / "a", "a"), {"name": "b", "argv": ["true"], "after": ["a"]}])
    kill(task.shim_of("a"), row("a")["pid"])
    assert run("wait", "b", check=False).code == 7
    assert [(row(name)["status"], row(name)["reason"]) for name in "ab"] == [
        ("failed", "lost"),
        ("failed", "dependency"),
    ]


def test_after_any_starts_after_every_end(root: Path, tmp_path: Path) -> None:
    task = new_task()
    gate = tmp_path / "gate"
    spawn_batch(
        [
            {"name": "fails", "argv": worker("exits", 1, "--after-file", gate)},
            {"name": "sleeps", "argv": worker("sleeps", 60)},
            {"name": "joins", "argv": ["true"], "after": ["fails", "sleeps"], "after_any": True},
        ]
    )
    gate.touch()
    task.ended("fails")
    assert statuses()["joins"] == "queued"
    run("cancel", "sleeps")
    task.ended("joins")
    assert statuses() == {"fails": "failed", "sleeps": "cancelled", "joins": "completed"}


@pytest.mark.slow
def test_after_one_that_has_ended_already(root: Path) -> None:
    task = new_task()
    spawn_batch([{"name": "good", "argv": ["true"]}, {"name": "bad", "argv": ["false"]}])
    task.ended("good", "bad")
    assert spawn(["true"], "--after", "good", name="b").json["status"] == "running"
    refused = spawn(["true"], "--after", "bad", name="c", check=False)
    assert refused.code == 1
    assert (refused.json["status"], refused.json["message"]) == ("failed", "a dependency was not met: bad failed")
    assert spawn(["true"], "--after", "bad", "--after-any", name="d").json["status"] == "running"
    task.ended("b", "c", "d")
    wait_until(task.roster, accept=lambda rows: rows["c"] == "failed", what="the roster to tell of c")


def test_after_one_whose_folder_was_removed_ends_too(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    spawn_batch(
        [held(tmp_path / "x", "x"), {"name": "a", "argv": ["true"]}, {"name": "b", "argv": ["true"], "after": ["a"]}]
    )
    remove(task.agent("a"))
    (tmp_path / "x").touch()
    assert run("wait", "b", "--timeout-seconds", "20", check=False).code == 7
    assert (task.exit("b") or {})["reason"] == "dependency"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("a", ["a"])], "a -> a"),
        ([("a", ["b"]), ("b", ["a"])], "a -> b -> a"),
        ([("a", ["c"]), ("b", ["a"]), ("c", ["b"])], "a -> c -> b -> a"),
    ],
)
def test_a_cycle_is_refused_and_named_and_nothing_is_burnt(
    root: Path, rows: list[tuple[str, list[str]]], said: str
) -> None:
    task = new_task()
    lines = "".join(json.dumps({"name": name, "argv": ["true"], "after": after}) + "\n" for name, after in rows)
    refused = run("spawn", "--batch", "-", stdin=lines, check=False)
    assert refused.code == 2
    assert said in refused.err
    assert list((task.path / "agents").iterdir()) == []


def test_after_nobody_known_is_refused(root: Path) -> None:
    task = new_task()
    refused = spawn(["true"], "--after", "nobody", name="a", check=False)
    assert refused.code == 3
    assert "no worker 'nobody' in task t1" in refused.err
    assert not task.agent("a").exists()


@pytest.mark.slow
def test_a_graph_of_a_hundred_workers_runs_in_its_order(root: Path) -> None:
    """Ten layers of ten: each worker waits for three of the layer above, whose ends are in the log before its start."""
    task = new_task(cap=4)
    after = {
        f"w{layer}-{place}": [f"w{layer - 1}-{(place + step) % 10}" for step in (0, 1, 5)] if layer else []
        for layer in range(10)
        for place in range(10)
    }
    spawn_batch([{"name": name, "argv": ["true"], "after": names} for name, names in after.items()])
    task.ended(*after)
    assert set(statuses().values()) == {"completed"}
    place = {
        (event["type"], event["agentInstance"]): seq
        for seq, event in enumerate(task.events())
        if "agentInstance" in event
    }
    for name, names in after.items():
        for other in names:
            assert place["agent.completed", other] < place["agent.started", name], f"{name} ran before {other}"
    assert len(task.events("agent.started")) == 100
