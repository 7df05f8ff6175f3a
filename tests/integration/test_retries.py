"""At stake: attempts belong to one worker, whose end is that of the last attempt; a cancel ends the retries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.steps import kill, new_task, row, spawn
from tests.support import run, text_in, wait_until, worker


def test_a_worker_that_fails_is_tried_again_until_it_completes(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn(worker("counts", tmp_path / "runs", 3), "--retries", "5", "--retry-delay-seconds", "0.01", name="a")
    assert run("wait", "a").out == "a completed\n"

    assert (tmp_path / "runs").read_text() == "run\n" * 3
    assert (task.agent("a") / "stdout.log").read_text() == "run 1\nrun 2\nrun 3\n"
    kinds = [event["type"] for event in task.events(of="a")]
    assert kinds == ["agent.queued", "agent.started", *["agent.retrying", "agent.retried"] * 2, "agent.completed"]
    retrying = [event["payload"] for event in task.events("agent.retrying")]
    assert [(one["attempt"], one["reason"], one["exitCode"]) for one in retrying] == [
        (2, "exit_code", 1),
        (3, "exit_code", 1),
    ]
    kept = [json.loads((task.agent("a") / f"exit.{number}.json").read_bytes()) for number in (1, 2)]
    assert [(one["status"], one["exitCode"], one["attempt"]) for one in kept] == [("failed", 1, 1), ("failed", 1, 2)]
    assert (task.exit("a") or {})["attempt"] == 3
    assert row("a")["attempt"] == 3


@pytest.mark.slow
def test_the_pause_doubles_and_only_the_last_end_is_terminal(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn(worker("counts", tmp_path / "runs", 99), "--retries", "3", "--retry-delay-seconds", "0.02", name="a")
    assert run("wait", "a", check=False).code == 7

    pauses = [event["payload"]["delaySeconds"] for event in task.events("agent.retrying")]
    assert len(pauses) == 3
    for number, pause in enumerate(pauses):
        assert 0.75 <= pause / (0.02 * 2**number) <= 1.25
    assert len(task.events("agent.failed")) == 1
    assert len((tmp_path / "runs").read_text().splitlines()) == 4
    assert run("wait-any", "--json").json["status"] == "failed"
    assert run("wait-any", check=False).code == 6


def test_a_signal_is_tried_again_but_a_time_limit_is_not(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn(["sh", "-c", "kill -9 $$"], "--retries", "1", "--retry-delay-seconds", "0.01", name="dies")
    spawn(worker("sleeps", 60), "--retries", "5", "--timeout-seconds", "0.2", name="late")
    task.ended("dies", "late")
    assert len(task.events("agent.retrying", of="dies")) == 1
    assert (task.exit("dies") or {})["signal"] == "SIGKILL"
    assert task.events("agent.retrying", of="late") == []
    assert (task.exit("late") or {})["reason"] == "timed_out"


def test_a_cancel_during_the_pause_ends_it_at_once(root: Path) -> None:
    task = new_task()
    spawn(["false"], "--retries", "5", "--retry-delay-seconds", "600", name="a")
    task.has("agent.retrying", "a")
    assert row("a")["status"] == "running"
    assert row("a")["pid"] is None, "no process of it is there between two attempts"
    assert run("cancel", "a", "--json").json["status"] == "cancelled"
    assert len(task.events("agent.started", of="a")) == 1
    assert (task.exit("a") or {})["status"] == "cancelled"


@pytest.mark.slow
def test_a_cancel_of_a_later_attempt_is_no_failure_to_be_tried_again(root: Path, tmp_path: Path) -> None:
    task = new_task()
    script = f"echo run >> {tmp_path / 'runs'}; test $(wc -l < {tmp_path / 'runs'}) -lt 2 && exit 1; exec sleep 60"
    spawn(["sh", "-c", script], "--retries", "5", "--retry-delay-seconds", "0.01", name="a")
    wait_until(lambda: text_in(tmp_path / "runs"), what="its second run", accept=lambda text: len(text.split()) == 2)
    identity = json.loads((task.agent("a") / "worker.json").read_bytes())
    assert (row("a")["pid"], row("a")["attempt"]) == (identity["pid"], 2)
    assert run("cancel", "a", "--json").json["status"] == "cancelled"
    assert len(text_in(tmp_path / "runs").split()) == 2


@pytest.mark.slow
def test_the_slot_is_kept_during_the_pause(root: Path) -> None:
    task = new_task(cap=1)
    spawn(["false"], "--retries", "1", "--retry-delay-seconds", "600", name="a")
    task.has("agent.retrying", "a")
    assert spawn(["true"], check=False).code == 5
    run("cancel", "a")


@pytest.mark.slow
def test_a_shim_killed_during_the_pause_is_told_as_lost(root: Path) -> None:
    task = new_task()
    spawn(["false"], "--retries", "1", "--retry-delay-seconds", "600", name="a")
    task.has("agent.retrying", "a")
    kill(task.shim_of("a"))
    assert run("wait", "a", check=False).code == 7
    assert (row("a")["status"], row("a")["reason"]) == ("failed", "lost")


@pytest.mark.slow
def test_dependants_wait_for_the_last_attempt(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn(worker("counts", tmp_path / "runs", 2), "--retries", "1", "--retry-delay-seconds", "0.01", name="a")
    spawn(["true"], "--after", "a", name="b")
    run("wait", "b")
    assert task.order("agent.completed") == ["a", "b"]
