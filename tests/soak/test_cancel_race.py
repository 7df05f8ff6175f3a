"""At stake: of an end and a cancel that meet, one is decided, and file, log and both commands tell the same."""

from __future__ import annotations

import json
import os
import random
import threading
from pathlib import Path
from typing import Any

import pytest

from agentctl.operations.start.requests import SpawnRequest
from agentctl.operations.start.spawning import spawn_workers
from agentctl.operations.stop.cancelling import Cancelled, cancel_workers
from agentctl.operations.where.locating import find_task
from tests.steps import Task, new_task

ENDS = ("agent.completed", "agent.failed", "agent.cancelled")


class Round:
    """One worker whose end and cancel are let go at the same time: it reads a FIFO to its end."""

    def __init__(self, task: Task, number: int, tmp_path: Path) -> None:
        self.task, self.name = task, f"r{number}"
        self.fifo = tmp_path / "fifo"
        self.place = find_task("t1")

    def play(self, chance: random.Random) -> Cancelled:
        """Return what the cancel said."""
        os.mkfifo(self.fifo)
        request = SpawnRequest(argv=["/bin/cat", str(self.fifo)], name=self.name, grace_seconds=5)
        [spawned] = spawn_workers(self.place, [request], queue=True)
        assert spawned.status in ("running", "queued")
        writer = os.open(self.fifo, os.O_WRONLY)  # returns once the worker reads
        self.fifo.unlink()
        end = threading.Timer(chance.choice([0, 0, 0.001, 0.003, 0.006]), os.close, [writer])
        end.start()
        [said] = cancel_workers(self.place, [self.name])
        end.join()
        return said

    def check(self, said: Cancelled) -> str:
        """Check that all tell the same; return the status."""
        decision: dict[str, Any] = json.loads((self.task.agent(self.name) / "exit.json").read_bytes())
        self.task.ended(self.name)
        assert decision["status"] in ("completed", "cancelled"), decision
        assert said.cancelled == (decision["status"] == "cancelled")
        assert said.status == decision["status"]
        assert [event["type"] for event in self.task.events(*ENDS, of=self.name)] == [f"agent.{decision['status']}"]
        assert len(self.task.events("agent.started", of=self.name)) == 1
        if decision["status"] == "completed":
            assert decision["exitCode"] == 0
        return said.status


def race(tmp_path: Path, rounds: int) -> set[str]:
    task = new_task(cap=3)
    chance = random.Random(rounds)
    found = set()
    for number in range(rounds):
        one = Round(task, number, tmp_path)
        found.add(one.check(one.play(chance)))
        _reap()
    return found


def _reap() -> None:
    """Collect the shims that this process has launched and that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass  # there is none


def test_a_cancel_that_meets_the_end_agrees_with_it(root: Path, tmp_path: Path) -> None:
    race(tmp_path, rounds=12)


@pytest.mark.soak
def test_a_cancel_that_meets_the_end_agrees_with_it_many_times(root: Path, tmp_path: Path) -> None:
    assert race(tmp_path, rounds=400) == {"completed", "cancelled"}
