"""At stake: the queue keeps its order, never stops and loses no worker, although no process owns it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.snapshots import files_with
from tests.steps import held, kill, new_task, row, spawn, spawn_batch, statuses
from tests.support import run, start, wait_until, worker


def runtime_folder() -> Path:
    """Return where the environments of queued workers wait."""
    return Path(os.environ["XDG_RUNTIME_DIR"]) / "agentctl"


def test_the_highest_priority_starts_first_then_the_oldest(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    spawn_batch([held(tmp_path / "gate", "first")])
    spawn(["true"], "--queue", name="plain-1")
    spawn_batch(
        [
            {"name": "low", "argv": ["true"], "priority": -4000},
            {"name": "plain-2", "argv": ["true"]},
            {"name": "high-1", "argv": ["true"], "priority": 7},
            {"name": "high-2", "argv": ["true"], "priority": 7},
        ]
    )
    spawn(["true"], "--queue", "--priority", "4000", name="top")
    order = ["top", "high-1", "high-2", "plain-1", "plain-2", "low"]
    assert task.tickets() == order

    (tmp_path / "gate").touch()
    task.ended("first", *order)
    assert task.order("agent.started") == ["first", *order]
    assert task.tickets() == []


@pytest.mark.slow
def test_a_queue_of_many_is_worked_off_by_the_shims_alone(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=2)
    names = [f"w{number}" for number in range(60)]
    spawn_batch([{"name": name, "argv": ["true"]} for name in names])
    task.ended(*names)
    assert sorted(task.order("agent.started")) == sorted(names)
    shims = {event["payload"]["shimPid"] for event in task.events("agent.started")}
    assert len(shims) <= 4, "a shim takes the next ticket instead of exiting"
    wait_until(lambda: list(runtime_folder().iterdir()), accept=lambda left: not left, what="no environment in memory")


def test_what_has_no_slot_waits_without_a_process(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    spawn_batch([held(tmp_path / "gate", "a"), {"name": "b", "argv": ["true"]}])
    told = row("b")
    assert (told["status"], told["pid"], told["health"], told["startedAt"]) == ("queued", None, None, None)
    assert not (task.agent("b") / "shim.json").exists()
    (tmp_path / "gate").touch()
    task.ended("a", "b")


def test_list_and_show_start_nobody(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    spawn_batch([held(tmp_path / "gate", "a"), held(tmp_path / "gate", "b")])
    kill(task.shim_of("a"), row("a")["pid"])
    assert statuses() == {"a": "failed", "b": "queued"}
    run("show", "b")
    assert task.order("agent.started") == ["a"]
    run("cancel", "--all")


@pytest.mark.slow
def test_the_order_survives_the_death_of_the_shims(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    order = ["c", "d", "e", "f"]
    spawn_batch([held(tmp_path / "gate", "a")])
    for name in order:
        spawn(["true"], "--queue", "--priority", str(-order.index(name)), name=name)
    kill(task.shim_of("a"))
    assert task.tickets() == order
    assert statuses() == {"a": "running", **dict.fromkeys(order, "queued")}

    (tmp_path / "gate").touch()
    run("wait", *order)
    assert statuses() == {**statuses(), **dict.fromkeys(order, "completed")}
    assert task.order("agent.started") == ["a", *order]


def test_a_shim_killed_between_two_workers_harms_neither(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    spawn(worker("exits", 0, "--after-file", tmp_path / "gate"), name="a", check=True)
    spawn(["true"], "--queue", name="b")
    kill(task.shim_of("a"), row("a")["pid"])
    run("wait", "b")
    assert statuses() == {"a": "failed", "b": "completed"}
    assert len(task.events("agent.started", of="b")) == 1


@pytest.mark.slow
def test_a_worker_whose_environment_is_gone_waits_for_resume_queue(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    spawn_batch([held(tmp_path / "gate", "a")])
    run("spawn", "--queue", "--name", "b", "--", "sh", "-c", "echo $TOLD", env={"TOLD": "then"})
    for file in runtime_folder().iterdir():
        file.unlink()
    (tmp_path / "gate").touch()
    task.ended("a")

    assert run("wait-any", "b", "--timeout-seconds", "0.1", check=False).code == 4
    assert statuses() == {"a": "completed", "b": "queued"}
    assert spawn(["true"], name="c").json["status"] == "running", "who stands still keeps nobody's slot"

    assert run("resume-queue", "--json", env={"TOLD": "now"}).json == ["b"]
    task.ended("b", "c")
    assert (task.agent("b") / "stdout.log").read_text() == "now\n"
    assert run("resume-queue").err == "every queued worker has its environment\n"
    assert run("spawn", "--resume-queue", "--json").json == [], "the flag from before the command works too"


def test_no_value_of_a_queued_environment_is_in_the_task(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    spawn_batch([held(tmp_path / "gate", "a")])
    run("spawn", "--queue", "--name", "b", "--env", "SAID=s3cr3t-1", "--", "true", env={"HELD": "s3cr3t-2"})
    assert files_with(task.path, "s3cr3t") == []
    assert {file.stat().st_mode & 0o777 for file in runtime_folder().iterdir()} == {0o600}
    assert runtime_folder().stat().st_mode & 0o777 == 0o700
    (tmp_path / "gate").touch()
    task.ended("a", "b")


def test_a_cancelled_ticket_never_starts_and_those_behind_it_do(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    spawn_batch([held(tmp_path / "gate", "a"), *({"name": name, "argv": ["true"]} for name in "bcd")])
    done = run("cancel", "c", "--json").json
    assert done == {"agentInstance": "c", "cancelled": True, "status": "cancelled", "survivors": []}
    (tmp_path / "gate").touch()
    task.ended("a", "b", "d")
    assert task.order("agent.started") == ["a", "b", "d"]
    wait_until(lambda: list(runtime_folder().iterdir()), accept=lambda left: not left, what="no environment in memory")


def test_a_missing_program_in_the_queue_fails_alone(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    spawn_batch([held(tmp_path / "gate", "a"), {"name": "b", "argv": [str(program)]}, {"name": "c", "argv": ["true"]}])
    program.unlink()
    (tmp_path / "gate").touch()
    task.ended("a", "b", "c")
    ended = task.exit("b")
    assert ended is not None
    assert (ended["status"], ended["reason"]) == ("failed", "not_started")
    assert str(program) in ended["message"]


def test_a_ticket_that_came_back_from_the_dead_runs_nothing_twice(root: Path, tmp_path: Path) -> None:
    """A power cut may undo the removal of a ticket, so that the ticket of a worker that ran is in the queue again."""
    task = new_task(cap=1)
    notes = tmp_path / "notes"
    spawn_batch([held(tmp_path / "gate", "a")])
    spawn(["sh", "-c", f"echo ran >> {notes}"], "--queue", name="b")
    ticket = next((task.path / "queue").iterdir()).name
    (tmp_path / "gate").touch()
    task.ended("a", "b")
    (task.path / "queue" / ticket).touch()

    assert statuses()["b"] == "completed"
    spawn(["true"], "--queue", name="c")
    task.ended("c")
    assert notes.read_text() == "ran\n"
    assert task.tickets() == []


@pytest.mark.slow
def test_a_waiter_starts_what_nobody_else_would(root: Path, tmp_path: Path) -> None:
    """All shims die with their workers, and nothing notices: the wait must find the free slots."""
    task = new_task(cap=1)
    spawn_batch([held(tmp_path / "gate", "a"), {"name": "b", "argv": ["true"]}])
    waiter = start("wait-all", "--json")
    kill(task.shim_of("a"), row("a")["pid"])
    out, _ = waiter.communicate(timeout=30)
    assert [end["status"] for end in json.loads(out)] == ["failed", "completed"]
    wait_until(task.tickets, accept=lambda left: left == [])
