"""At stake: parents, shims and waiters of a nest are killed at random; slots, cap, results and truth survive."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from tests.life import passes, set_config
from tests.shells import AGENTCTL, define_shells
from tests.steps import Task, most_at_once, new_task
from tests.support import run, start, wait_until

CAP, DEPTH = 3, 4
#: A storm ends after so long, however few it has killed by then.
LONGEST_S = 70.0


class NestStorm:
    """A tree of tasks, four levels deep, that is kept busy while somebody kills."""

    def __init__(self, task: Task, folder: Path, seed: int) -> None:
        self.task, self.random = task, random.Random(seed)
        self.notes = folder / "notes"
        self.notes.touch()
        self.nest = folder / "nest.sh"
        leaf = f"echo + $$ >> {self.notes}; sleep 0.05; echo - $$ >> {self.notes}; echo leaf"
        child = f'"sh {self.nest} $(($1 - 1))"'
        self.nest.write_text(
            f'if [ "$1" -eq 0 ]; then {leaf}; exit 0; fi\n'
            f'if [ "$1" -eq 2 ]; then {AGENTCTL} spawn --queue -- sh {self.nest} $(($1 - 1)) && {AGENTCTL} wait-all\n'
            f"else {AGENTCTL} subtask shell ': level' --intent {child} --json; fi\n",
            encoding="utf-8",
        )
        self.tops: list[subprocess.Popen[str]] = []
        self.killed = {"parent": 0, "shim": 0, "waiter": 0}

    def feed(self) -> None:
        """Keep a few nests under way, and a few in the queue."""
        if len(self.task.tickets()) < CAP and sum(one.poll() is None for one in self.tops) < CAP:
            argv = ["sh", str(self.nest), str(DEPTH)]
            self.tops.append(start("spawn", "--queue", "--", *argv))

    def _live_folders(self) -> list[Path]:
        return [path.parent for path in self.task.path.parent.glob("*/agents/*/worker.json")
                if not (path.parent / "exit.json").exists()]  # fmt: skip

    def kill_one(self) -> None:
        """SIGKILL a parent, a shim or a waiter, whichever is there."""
        kind = self.random.choice(sorted(self.killed))
        pids = self._waiters() if kind == "waiter" else self._named(kind)
        if pids:
            pid = self.random.choice(pids)
            try:
                if self._is_ours(psutil.Process(pid)):
                    os.kill(pid, signal.SIGKILL)
                    self.killed[kind] += 1
            except (psutil.Error, ProcessLookupError):
                pass  # it has ended by itself

    def _named(self, kind: str) -> list[int]:
        found = []
        for folder in self._live_folders():
            try:
                is_leaf = json.loads((folder / "spec.json").read_bytes())["depth"] == DEPTH
                file = folder / ("shim.json" if kind == "shim" else "worker.json")
                if kind == "shim" or not is_leaf:  # A leaf that is killed could not write down that it is not at work.
                    found.append(int(json.loads(file.read_bytes())["pid"]))
            except (OSError, ValueError, KeyError):
                continue
        return found

    def _waiters(self) -> list[int]:
        """Return the commands that parents have called, and wait for."""
        found: list[int] = []
        for pid in self._named("parent"):
            try:
                found += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split())
            except (OSError, ValueError):
                continue
        return found

    def _is_ours(self, process: psutil.Process) -> bool:
        """Tell whether a pid that a file named is still of this test: a shim's environment is empty."""
        line = process.cmdline()
        return str(self.task.path) in line if "-S" in line else process.environ().get("HOME") == os.environ["HOME"]


def rage(storm: NestStorm, kills: int) -> None:
    until = time.monotonic() + LONGEST_S
    while sum(storm.killed.values()) < kills and time.monotonic() < until:
        storm.feed()
        storm.kill_one()
        passes(storm.random.uniform(0, 0.02))


def calm(storm: NestStorm) -> None:
    """Let everything come to its end; a wait keeps a queue going whose shims are all dead."""
    for top in storm.tops:
        _, err = top.communicate(timeout=60)
        assert "bug in agentctl" not in err, err
    run("spawn", "--resume-queue")

    def unended() -> list[str]:
        run("wait-any", "--recursive", "--timeout-seconds", "0.3", check=False)
        rows = run("list", "--recursive", "--json").json
        return [f"{row['taskId']}/{row['agentInstance']} {row['status']} {row['health']}" for row in rows
                if row["status"] not in ("completed", "failed", "cancelled")]  # fmt: skip

    wait_until(unended, 120, accept=lambda left: not left, what="every worker to have ended")


def check(storm: NestStorm) -> None:
    """Check what must hold, whoever was killed."""
    tasks = storm.task.path.parent
    assert not list(tasks.glob("*/shim.log")), [file.read_text() for file in tasks.glob("*/shim.log")]
    assert most_at_once(storm.notes) <= CAP
    for row in run("list", "--recursive", "--json").json:
        task, name = Task(tasks / row["taskId"]), row["agentInstance"]
        decision = task.exit(name)
        assert decision is not None, row
        ends = task.events("agent.completed", "agent.failed", "agent.cancelled", of=name)
        assert [end["type"] for end in ends] == [f"agent.{decision['status']}"], row
        assert len(task.events("agent.started", of=name)) <= 1, row
        if decision["status"] == "completed" and row["driver"] is not None:
            assert json.loads((task.agent(name) / "result.json").read_bytes())["finalMessage"], row
    assert storm.task.tickets() == []
    again = [start("spawn", "--queue", "--wait", "--", "true") for _ in range(CAP)]
    assert [one.wait(timeout=30) for one in again] == [0] * CAP, "a slot is lost"


@pytest.mark.parametrize(("seed", "kills"), [pytest.param(seed, 334, marks=pytest.mark.soak) for seed in (11, 12, 13)])
def test_a_nest_survives_whoever_is_killed(root: Path, tmp_path: Path, seed: int, kills: int) -> None:
    define_shells()
    task = new_task(cap=CAP, depth=DEPTH)
    set_config(task, maxConcurrentAgents=CAP, maxDepth=DEPTH, graceSeconds=0.2, timeoutSeconds=60)
    storm = NestStorm(task, tmp_path, seed)
    rage(storm, kills)
    calm(storm)
    check(storm)
    print(f"killed: {storm.killed}")
    assert sum(storm.killed.values()) >= min(kills, 8), storm.killed
