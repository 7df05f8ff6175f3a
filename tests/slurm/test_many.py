"""At stake: many workers at once: the caps hold, Slurm is asked no more often than for one, and none runs twice."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from tests.placed import ask_engine
from tests.processes import variables_of, words_of
from tests.slurm.cluster import Cluster
from tests.slurm.on_nodes import nothing_is_left
from tests.steps import Task, most_at_once, new_task, spawn_batch
from tests.support import REPOSITORY, run, start, worker

MANY, CAP = 200, 8
LAUNCHES, WIDE_CAP = 500, 24
#: How often the controller is restarted meanwhile.
RESTARTS = 6
MANY_S = 400
ENDS = ("agent.completed", "agent.failed", "agent.cancelled")


def counting_squeue(folder: Path) -> Path:
    """Make a `squeue` that notes when it is called, and then is the real one; return the file with the times."""
    programs, calls = folder / "programs", folder / "calls"
    programs.mkdir()
    (programs / "squeue").write_text(f'#!/bin/sh\ndate +%s.%N >> {calls}\nexec {shutil.which("squeue")} "$@"\n')
    (programs / "squeue").chmod(0o755)
    calls.touch()
    return calls


@pytest.mark.timeout(MANY_S)
def test_two_hundred_workers_keep_the_cap_and_ask_slurm_once_per_interval(
    many: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    every_s = 2
    ask_engine("slurm", pollSeconds=every_s, silenceSeconds=30)
    calls, times = counting_squeue(tmp_path), tmp_path / "times"
    monkeypatch.setenv("PATH", f"{calls.parent}/programs:{os.environ['PATH']}")
    task = new_task(cap=CAP)
    begun = time.monotonic()
    spawn_batch({"argv": worker("overlaps", times), "runner": "slurm"} for _ in range(MANY))
    run("wait-all", timeout=MANY_S)
    took_s = time.monotonic() - begun
    assert Counter(event["type"] for event in task.events(*ENDS)) == {"agent.completed": MANY}
    assert 2 <= most_at_once(times) <= CAP
    asked = [float(line) for line in calls.read_text().split()]
    assert 1 <= len(asked) <= took_s / every_s + 1
    # Each call is noted a moment after it was decided on: two can seem to be closer than they were.
    assert [round(after - before, 2) for before, after in pairwise(asked) if after - before < every_s - 1] == []
    assert task.tickets() == []


def test_two_commands_on_one_task_keep_its_cap(many: Cluster, tmp_path: Path) -> None:
    task = new_task(cap=3)
    lines = [tmp_path / f"batch{number}" for number in range(2)]
    for file in lines:
        row = {"argv": worker("overlaps", tmp_path / "times"), "runner": "slurm"}
        file.write_text(f"{json.dumps(row)}\n" * 5)
    both = [start("spawn", "--batch", file) for file in lines]
    assert [one.wait() for one in both] == [0, 0]
    waits = [start("wait-all") for _ in range(2)]
    assert [one.wait() for one in waits] == [0, 0]
    assert len(task.order("agent.completed")) == 10
    assert most_at_once(tmp_path / "times") <= 3


# -- kills -------------------------------------------------------------------------------------------------------------


class Killer:
    """Kills, at random, what follows workers here, and the controller; all by the same seed."""

    def __init__(self, cluster: Cluster, task: Task, seed: int) -> None:
        self._cluster, self._task, self._random = cluster, task, random.Random(seed)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.killed: Counter[str] = Counter()
        self.problem: BaseException | None = None

    @contextmanager
    def at_work(self) -> Iterator[Counter[str]]:
        """Kill until the block is left; the controller runs then."""
        self._thread.start()
        try:
            yield self.killed
        finally:
            self._is_over.set()
            self._thread.join()
        if self.problem is not None:
            raise self.problem

    def _run(self) -> None:
        try:
            rounds = 0
            while not self._is_over.wait(self._random.uniform(0.2, 0.8)):
                rounds += 1
                if rounds % 60 == 0 and rounds <= RESTARTS * 60:
                    self._restart_controller()
                elif rounds % 10 == 0:
                    self._cluster.resume_nodes()
                else:
                    self._kill(self._random.choice(("stand-in", "shim")))
        except BaseException as error:  # noqa: BLE001 - it is raised in the test
            self.problem = error

    def _restart_controller(self) -> None:
        how = self._random.choice((signal.SIGTERM, signal.SIGKILL))
        self._cluster.stop_controller(how)
        self._is_over.wait(self._random.uniform(0, 2))
        self._cluster.start_controller()
        self.killed[f"controller {how.name}"] += 1

    def _kill(self, what: str) -> None:
        found = [process for process in psutil.process_iter() if self._is_one(process, what)]
        if found:
            try:
                self._random.choice(found).kill()
                self.killed[what] += 1
            except psutil.NoSuchProcess:
                pass

    def _is_one(self, process: psutil.Process, what: str) -> bool:
        """Return whether a process is a stand-in or a shim of this test, at the head."""
        words = words_of(process)
        if what == "shim":
            return words[-2:] == [str(REPOSITORY / "agentctl/shim/__main__.py"), str(self._task.path)]
        return words[-1:] == [str(REPOSITORY / "agentctl/worker_programs/on_node/__main__.py")] and (
            variables_of(process).get("AGENTCTL_AGENT_DIR", "").startswith(f"{self._task.path}/")
        )


@pytest.mark.timeout(600)
def test_none_of_five_hundred_launches_runs_twice_whatever_is_killed(many: Cluster, tmp_path: Path) -> None:
    """What follows workers here is killed at random, and so is the controller, which then starts some again."""
    task, runs, seed = new_task(cap=WIDE_CAP), tmp_path / "runs", 20261126
    runs.touch()
    argv = ["sh", "-c", f'echo "$AGENTCTL_INSTANCE" >> {runs}']
    spawn_batch({"name": f"w{number}", "argv": argv, "runner": "slurm"} for number in range(LAUNCHES))
    with Killer(many, task, seed).at_work() as killed:
        run("wait-all", check=False, timeout=560)
    print(f"killed: {dict(killed)}; told: {dict(Counter(event['type'] for event in task.events(*ENDS)))}")
    assert killed["stand-in"] > 10
    assert killed["shim"] > 10
    ran = Counter(runs.read_text().split())
    assert [name for name, times in ran.items() if times > 1] == [], f"with the seed {seed}"
    ended = Counter(event["agentInstance"] for event in task.events(*ENDS))
    assert (len(ended), set(ended.values())) == (LAUNCHES, {1})
    assert [name for name in task.order("agent.completed") if ran[name] != 1] == []
    assert task.tickets() == []
    nothing_is_left(many, 60)
