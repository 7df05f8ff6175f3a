"""At stake: time limits use the monotonic clock, end the workers that exceed them, and harm no others."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.life import is_settled, says_ready
from tests.steps import new_task, row, spawn, statuses
from tests.support import run, start, wait_for_text, worker

LIMIT_S = 4.0  # long enough for a busy machine to be ready in time


@pytest.mark.slow
def test_the_timeout_of_a_wait_kills_nobody(root: Path) -> None:
    new_task()
    spawn(worker("sleeps", 60), name="a")
    for command in ("wait-any", "wait-all"):
        waited = run(command, "--timeout-seconds", "0.1", check=False)
        assert waited.code == 4, waited
    assert (row("a")["status"], row("a")["health"]) == ("running", "supervised")
    run("cancel", "a")


def test_wall_times_of_the_future_in_log_and_files_move_no_limit(root: Path, tmp_path: Path) -> None:
    """The clock was set back, so everything written before seems to come from the future."""
    task = new_task(cap=1, grace=0.1)
    gate = tmp_path / "gate"
    spawn(worker("waits_for_file", gate), name="a")
    spawn(worker("sleeps", 60), "--queue", "--timeout-seconds", "0.3", name="b")
    for file in (task.path / "events.jsonl", task.agent("a") / "worker.json", task.agent("a") / "spec.json"):
        # Written in place: the log is never replaced.
        text = file.read_text(encoding="utf-8").replace('"20', '"99')
        with file.open("r+", encoding="utf-8") as stream:
            stream.write(text)
    assert statuses() == {"a": "running", "b": "queued"}
    waiting = start("wait-any", "--json", "--timeout-seconds", "20")
    gate.touch()
    out, _ = waiting.communicate(timeout=30)
    assert (waiting.returncode, json.loads(out)["agentInstance"]) == (0, "a")
    assert run("wait-any", "--json").json["reason"] == "timed_out"
    decision = is_settled(task, "b")
    assert 0.3 <= decision["durationSeconds"] < 20


@pytest.mark.slow
def test_a_time_limit_of_a_stopped_worker_still_ends_it(root: Path) -> None:
    """A SIGSTOP from outside is not a pause: the clock runs on, and the worker is continued so that it can end."""
    task = new_task(grace=20)
    spawn(worker("sleeps", 60), "--timeout-seconds", str(LIMIT_S), name="a")
    says_ready(task, "a")
    os.kill(task.events("agent.started")[0]["payload"]["pid"], signal.SIGSTOP)
    run("wait", "a", check=False)
    decision = is_settled(task, "a")
    assert (decision["reason"], decision["exitCode"]) == ("timed_out", 130)


def test_a_cancel_during_a_timeouts_escalation_changes_nothing_about_its_reason(root: Path) -> None:
    """The first cause counts: a worker that its time limit ended was not cancelled."""
    task = new_task()
    argv = ["/bin/sh", "-c", 'trap "echo interrupted" INT; trap "" TERM; while :; do sleep 0.05; done']
    spawn(argv, "--timeout-seconds", "1", "--grace-seconds", "30", name="a")
    wait_for_text(task.agent("a") / "stdout.log", "interrupted")
    told = run("cancel", "a", "--grace-seconds", "0.05", "--json", check=False).json
    assert (told["cancelled"], told["status"]) == (False, "failed")
    assert is_settled(task, "a")["reason"] == "timed_out"
