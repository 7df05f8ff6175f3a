"""At stake: parents, shims and waiters of a nest are killed at random; slots, cap, results and truth survive."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from glob import glob  # Folders may go meanwhile; Path.glob would raise.
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.life import passes, set_config
from tests.processes import variables_of, words_of
from tests.shells import AGENTCTL, define_shells
from tests.steps import Task, most_at_once, new_task
from tests.support import run, start, wait_until

CAP, DEPTH = 3, 4
#: What a storm may take for its kills: twice what it takes where eight other processes want the same two cores.
LONGEST_S = 600.0
#: So many kills follow each other. Between two squalls nests grow again, as deep as chance wants it.
SQUALL = 14
GROWING_S = 5.0
#: What a kill can bring about, beside `completed`: of a parent, of a shim, of a wait that a parent had called.
ENDS = {"signal", "lost", "exit_code"}


class NestStorm:
    """A tree of tasks, four levels deep, that is kept busy while somebody kills."""

    def __init__(self, task: Task, folder: Path, seed: int) -> None:
        self.task, self.random = task, random.Random(seed)
        self.notes = folder / "notes"
        self.notes.touch()
        self.nest = folder / "nest.sh"
        leaf = f"echo + $$ >> {self.notes}; sleep 0.3; echo - $$ >> {self.notes}; echo leaf"
        child = f'"sh {self.nest} $(($1 - 1))"'
        self.nest.write_text(
            f'if [ "$1" -eq 0 ]; then {leaf}; exit 0; fi\n'
            f'if [ "$1" -eq 2 ]; then {AGENTCTL} spawn --queue -- sh {self.nest} $(($1 - 1)) && {AGENTCTL} wait-all\n'
            f"else {AGENTCTL} subtask shell ': level' --intent {child} --json; fi\n",
            encoding="utf-8",
        )
        self.tops: list[subprocess.Popen[str]] = []
        self.watcher: subprocess.Popen[str] | None = None
        self.killed = {"parent": 0, "shim": 0, "waiter": 0}

    def feed(self) -> None:
        """Keep a few nests under way and in the queue; somebody waits, who keeps the queue going when no shim lives."""
        if self.watcher is None or self.watcher.poll() is not None:
            self.watcher = start("wait-all", stdout=subprocess.DEVNULL)
        if len(self.task.tickets()) < CAP and sum(one.poll() is None for one in self.tops) < CAP:
            argv = ["sh", str(self.nest), str(DEPTH)]
            self.tops.append(start("spawn", "--queue", "--", *argv))

    def grow(self, depth: int) -> None:
        """Let nests grow until somebody works at this depth, or for a while: they may be stuck until the next look."""
        until = time.monotonic() + GROWING_S
        while time.monotonic() < until:
            self.feed()
            if depth in [self._depth_of(folder) for folder in self._live_folders()]:
                return
            passes(0.02)

    def _live_folders(self) -> list[Path]:
        tasks = self.task.path.parent
        found = [(tasks / name).parent for name in glob("*/agents/*/worker.json", root_dir=tasks)]
        return [folder for folder in found if not (folder / "exit.json").exists()]

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
                is_leaf = self._depth_of(folder) == DEPTH
                file = folder / ("shim.json" if kind == "shim" else "worker.json")
                if kind == "shim" or not is_leaf:  # A leaf that is killed could not write down that it is not at work.
                    found.append(int(json.loads(file.read_bytes())["pid"]))
            except (OSError, ValueError, KeyError):
                continue
        return found

    def _depth_of(self, folder: Path) -> int:
        return int(json.loads((folder / "spec.json").read_bytes())["depth"])

    def _waiters(self) -> list[int]:
        """Return the commands that parents have called, and wait for, and the one that waits for all."""
        found = [self.watcher.pid] if self.watcher is not None and self.watcher.poll() is None else []
        for pid in self._named("parent"):
            try:
                found += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split())
            except (OSError, ValueError):
                continue
        return found

    def _is_ours(self, process: psutil.Process) -> bool:
        """Tell whether a pid that a file named is still of this test: by its home, a shim without one by its task."""
        tasks = str(self.task.path.parent)
        home = variables_of(process).get("HOME")
        return home == os.environ["HOME"] or any(word.startswith(tasks) for word in words_of(process))


def rage(storm: NestStorm, kills: int) -> None:
    """Kill so many, and fail if there was not time enough."""
    until = time.monotonic() + LONGEST_S
    while sum(storm.killed.values()) < kills:
        assert time.monotonic() < until, f"after {LONGEST_S:g} s: {storm.killed}"
        storm.grow(storm.random.randint(0, DEPTH))
        for _ in range(min(storm.random.randint(1, SQUALL), kills - sum(storm.killed.values()))):
            storm.kill_one()
            passes(storm.random.uniform(0, 0.02))


def calm(storm: NestStorm) -> None:
    """Let everything come to its end; a wait keeps a queue going whose shims are all dead."""
    for command in (*storm.tops, storm.watcher):
        assert command is not None
        _, err = command.communicate(timeout=90)
        assert "bug in agentctl" not in err, err
    run("resume-queue")

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
    rows = run("list", "--recursive", "--json").json
    for row in rows:
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
    check_force(rows)


def check_force(rows: list[dict[str, Any]]) -> None:
    """Check that the storm was one: it left nests time to get to their leaves, and hit all kinds of workers."""
    ends = Counter(row["reason"] or row["status"] for row in rows)
    reached = Counter(row["depth"] for row in rows if row["startedAt"])
    print(f"{len(rows)} workers: {dict(ends)}, started at each depth: {dict(sorted(reached.items()))}")
    assert set(reached) == set(range(DEPTH + 1)), reached
    assert set(ends) >= ENDS, ends
    assert ends["completed"] >= len(rows) / 10, ends


@pytest.mark.parametrize(("seed", "kills"), [pytest.param(seed, 334, marks=pytest.mark.soak) for seed in (11, 12, 13)])
def test_a_nest_survives_whoever_is_killed(root: Path, tmp_path: Path, seed: int, kills: int) -> None:
    define_shells()
    task = new_task(cap=CAP, depth=DEPTH)
    limits = {"maxConcurrentAgents": CAP, "maxDepth": DEPTH, "graceSeconds": 0.2, "timeoutSeconds": 60}
    set_config(task, **limits, breakerFailures=0)  # With it, no sub-task would be started after the first few kills.
    storm = NestStorm(task, tmp_path, seed)
    rage(storm, kills)
    calm(storm)
    print(f"killed: {storm.killed}")
    check(storm)
    assert min(storm.killed.values()) > kills / 10, storm.killed
