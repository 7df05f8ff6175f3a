"""At stake: `--key` starts exactly one worker, no matter how often and by how many processes it is used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentctl.domain.same_request import digests_of
from agentctl.errors import Conflict
from agentctl.operations.start.request_keys import each_keyed
from agentctl.operations.start.requests import SpawnRequest
from agentctl.operations.start.spawning import spawn_workers
from agentctl.operations.talk.messaging import deliver_message
from agentctl.operations.where.locating import find_task
from tests.steps import new_task, spawn, spawn_batch, statuses
from tests.support import alike, run, start, worker


def test_the_same_key_twice_starts_one_worker_and_answers_with_it(root: Path, tmp_path: Path) -> None:
    task = new_task()
    first = spawn(worker("exits", 0, "--after-file", tmp_path / "gate"), "--key", "nightly/2026-11-21 \u00e9").json
    second = spawn(worker("exits", 0, "--after-file", tmp_path / "gate"), "--key", "nightly/2026-11-21 \u00e9").json
    assert first["reused"] is False
    assert second == {**first, "reused": True}
    (tmp_path / "gate").touch()
    task.ended(first["agentInstance"])
    third = spawn(worker("exits", 0, "--after-file", tmp_path / "gate"), "--key", "nightly/2026-11-21 \u00e9").json
    assert (third["agentInstance"], third["status"]) == (first["agentInstance"], "completed")
    assert spawn(["true"], "--key", "another", name="b").json["reused"] is False
    task.ended("b")
    assert len(statuses()) == 2


def test_eight_that_race_with_one_key_start_one_worker(root: Path, tmp_path: Path) -> None:
    task = new_task()
    gate = tmp_path / "gate"
    argv = worker("exits", 0, "--after-file", gate)
    named = [["--name", "one"] if number % 2 else [] for number in range(8)]
    racers = [start("spawn", "--json", "--queue", "--key", "k", *name, "--", *argv) for name in named]
    told = [json.loads(racer.communicate(timeout=60)[0]) for racer in racers]
    assert len({one["agentInstance"] for one in told}) == 1
    assert sorted(one["reused"] for one in told) == [False] + [True] * 7
    assert len(task.events("agent.queued")) == 1
    assert [path.name for path in (task.path / "agents").iterdir()] == [told[0]["agentInstance"]]
    gate.touch()
    task.ended(told[0]["agentInstance"])


def test_a_spawner_killed_on_the_way_leaves_its_key_to_the_next(root: Path) -> None:
    task = new_task()
    killed = run(
        "spawn", "--key", "k", "--name", "a", "--", "true", env={"AGENTCTL_FAILPOINT": "spawn.after-spec"}, check=False
    )
    assert killed.code == -9
    assert statuses() == {}
    again = spawn(["true"], "--key", "k", name="a").json
    assert again["reused"] is False
    task.ended("a")
    assert statuses() == {"a": "completed"}


@pytest.mark.parametrize("point", ["dispatch.after-launch", *alike("spawn.after-ticket", "spawn.after-queued")])
@pytest.mark.slow
def test_a_spawner_killed_later_has_one_worker_that_runs_once_or_never(root: Path, tmp_path: Path, point: str) -> None:
    task = new_task()
    argv = ["sh", "-c", f"echo ran >> {tmp_path / 'notes'}"]
    killed = run(
        "spawn", "--queue", "--key", "k", "--name", "a", "--", *argv, env={"AGENTCTL_FAILPOINT": point}, check=False
    )
    assert killed.code == -9
    again = spawn(argv, "--key", "k", name="a").json
    assert again["agentInstance"] == "a"
    run("wait", "a", check=False)
    ran = (tmp_path / "notes").read_text().count("ran") if (tmp_path / "notes").exists() else 0
    assert ran == len(task.events("agent.started")) == (1 if statuses() == {"a": "completed"} else 0)
    assert len(task.events("agent.queued")) == 1
    assert spawn(argv, "--key", "k").json["status"] == statuses()["a"]


def test_a_key_stands_for_one_worker_in_a_batch_too(root: Path) -> None:
    task = new_task()
    told = spawn_batch([{"argv": ["true"], "key": "x"}, {"argv": ["true"], "key": "y"}, {"argv": ["true"], "key": "x"}])
    assert [one["reused"] for one in told] == [False, False, True]
    assert told[0]["agentInstance"] == told[2]["agentInstance"]
    task.ended(told[0]["agentInstance"], told[1]["agentInstance"])
    assert len(task.events("agent.started")) == 2


@pytest.mark.slow
def test_a_key_counts_within_its_task_alone(root: Path) -> None:
    task = new_task()
    spawn(["true"], "--key", "k", name="a")
    task.ended("a")
    run("new", "Another", "--id", "t2")
    assert spawn(["true"], "--key", "k", name="a").json == {
        "agentInstance": "a", "status": "running", "pid": run("show", "a", "--json").json["pid"], "taskId": "t2",
        "reused": False,
    }  # fmt: skip
    run("wait", "a")


@pytest.mark.parametrize("gone", ["the folder", *alike("the program", "whom it waited for")])
def test_a_key_tells_what_it_did_though_what_its_request_named_is_gone(root: Path, tmp_path: Path, gone: str) -> None:
    """A refusal would say that nothing was done, and whoever believes it starts the work once more."""
    new_task()
    folder, program = tmp_path / "folder", tmp_path / "program"
    folder.mkdir()
    program.write_text('#!/bin/sh\nrm "$0"\n', encoding="ascii")
    program.chmod(0o755)
    spawn(["true"], "--wait", name="dep")
    options, argv = {
        "the folder": (["--cwd", str(folder)], ["rmdir", str(folder)]),
        "the program": ([], [str(program)]),
        "whom it waited for": (["--after", "dep"], ["true"]),
    }[gone]
    spawn(argv, *options, "--queue", "--key", "k", "--wait", name="a")
    run("rm", "dep")
    again = spawn(argv, *options, "--queue", "--key", "k", name="a")
    assert (again.json["agentInstance"], again.json["reused"]) == ("a", True)
    assert spawn(["false"], *options, "--queue", "--key", "k", check=False).code == 8
    assert list(statuses()) == ["a"]


def test_two_different_workers_of_a_batch_have_no_key_in_common(root: Path) -> None:
    new_task()
    rows = [{"argv": ["true"], "key": "k"}, {"argv": ["false"], "key": "k"}]
    refused = run("spawn", "--batch", "-", stdin="".join(json.dumps(row) + "\n" for row in rows), check=False)
    assert (refused.code, statuses()) == (2, {})
    assert "2: the key 'k' is given to another worker of the batch, too" in refused.err


def test_of_two_requests_that_come_at_once_with_one_key_one_is_carried_out(root: Path) -> None:
    """Each is about several workers; neither has done anything yet when the other one takes the key."""
    task = new_task()
    spawn(["sleep", "600"], name="a")
    spawn(["sleep", "600"], name="b")
    place = find_task(None)
    first, second = ({"worker": ["a", "b"], "text": text} for text in ("one", "two"))
    keys = each_keyed(place, "k", ["a", "b"], digests_of("send", first))
    newer = each_keyed(place, "k", ["a", "b"], digests_of("send", second))
    deliver_message(place, "a", "two", key=newer["a"], among=["a", "b"])
    for name in ("a", "b"):
        with pytest.raises(Conflict, match=r"the key 'k.*that request differs in text"):
            deliver_message(place, name, "one", key=keys[name], among=["a", "b"])
    deliver_message(place, "b", "two", key=newer["b"], among=["a", "b"])
    sent = [json.loads(file.read_bytes())["text"] for file in task.path.glob("agents/*/inbox/*.json")]
    assert sent == ["two", "two"]
    run("cancel", "--all")


def test_of_two_starts_that_come_at_once_with_one_key_one_is_carried_out(root: Path) -> None:
    new_task()
    place = find_task(None)
    several = digests_of("retry", {"worker": ["a", "b"]})
    keys = each_keyed(place, "k", ["a", "b"], several)
    run("spawn", "--key", "k", "--name", "c", "--wait", "--", "true")
    with pytest.raises(Conflict, match="the key 'k' has been taken by another request already"):
        spawn_workers(place, [SpawnRequest(name="a", argv=["true"], key=keys["a"], said=several)], queue=True)
    assert statuses() == {"c": "completed"}


def test_the_key_of_one_of_several_is_no_key_of_a_caller(root: Path) -> None:
    """A caller whose keys are made of words has `build a` beside `build`."""
    new_task()
    place = find_task(None)
    spawn(["true"], "--wait", "--key", "build a", name="x")
    said = digests_of("retry", {"worker": ["a", "b"]})
    key = each_keyed(place, "build", ["a", "b"], said)["a"]
    made = spawn_workers(place, [SpawnRequest(name="a", argv=["true"], key=key, said=said)], queue=True)
    assert (made[0].agent_instance, made[0].reused) == ("a", False)
    run("wait", "a")
