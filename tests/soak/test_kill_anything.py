"""At stake: promise 9 as a whole. Commands, shims and workers are killed at random, and the truth survives."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from collections import Counter
from pathlib import Path

import psutil
import pytest

from tests.life import is_settled, passes, set_config
from tests.processes import words_of
from tests.snapshots import files_with
from tests.steps import Task, new_task
from tests.support import run, start, wait_until, worker

SECRET = "sesame-in-no-file"


class Storm:
    """A task under fire: commands that run at the same time, and a killer among them."""

    def __init__(self, task: Task, seed: int, ran: Path) -> None:
        self.task, self.ran = task, ran
        self.random = random.Random(seed)
        self.commands: list[subprocess.Popen[str]] = []
        self.names: list[str] = []
        self.pids = 0

    def act(self) -> None:
        """Do one thing, and go on before it is done."""
        kinds = [self.spawn, self.cancel, self.read, self.pause, self.kill_shim, self.kill_worker, self.kill_command]
        [kind] = self.random.choices(kinds, weights=[8, 3, 2, 1, 3, 1, 4])
        kind()
        while len([one for one in self.commands if one.poll() is None]) >= 4:
            passes(0.01)
        passes(self.random.uniform(0, 0.05))

    def spawn(self) -> None:
        """One of several kinds of worker; each first writes down that it was executed."""
        name = f"w{len(self.names)}"
        self.pids += 1
        kinds = [
            ["true"],
            ["sleep", "0.2"],
            worker("sleeps", 30),
            worker("stubborn", self.ran.with_name(f"pids{self.pids}")),
        ]
        script = f'echo "$AGENTCTL_INSTANCE" >> {self.ran}; exec "$@"'
        options = ["--queue", "--env", f"TOKEN={SECRET}"] if self.random.random() < 0.8 else []
        if self.names and self.random.random() < 0.2:
            options += ["--after", self.random.choice(self.names), "--after-any"]
        argv = ["/bin/sh", "-c", script, "sh", *self.random.choice(kinds)]
        self.commands.append(start("spawn", *options, "--name", name, "--", *argv))
        self.names.append(name)

    def cancel(self) -> None:
        """Cancel somebody who may be anywhere in its life."""
        if self.names:
            self.commands.append(start("cancel", self.random.choice(self.names), "--grace-seconds", "0.05"))

    def read(self) -> None:
        """Look, wait, or ask the doctor."""
        argv = self.random.choice([["list"], ["wait-any", "--timeout-seconds", "1"], ["doctor"], ["tasks"]])
        self.commands.append(start(*argv))

    def pause(self) -> None:
        """Stop or continue somebody."""
        if self.names:
            self.commands.append(start(self.random.choice(["pause", "unpause"]), self.random.choice(self.names)))

    def kill_command(self) -> None:
        """SIGKILL a command, whatever it is doing."""
        running = [one for one in self.commands if one.poll() is None]
        if running:
            self.random.choice(running).kill()

    def kill_shim(self) -> None:
        """SIGKILL a shim of this task, between two workers too."""
        self._kill([one for one in psutil.process_iter() if {str(self.task.path), "-S"} <= set(words_of(one))])

    def kill_worker(self) -> None:
        """SIGKILL the first process of a worker."""
        found = []
        for file in self.task.path.glob("agents/*/worker.json"):
            try:
                process = psutil.Process(json.loads(file.read_bytes())["pid"])
                if process.environ().get("AGENTCTL_TASK") == self.task.path.name:
                    found.append(process)
            except (psutil.Error, ValueError, OSError):
                continue
        self._kill(found)

    def _kill(self, processes: list[psutil.Process]) -> None:
        if processes:
            try:
                self.random.choice(processes).send_signal(signal.SIGKILL)
            except psutil.Error:
                pass  # it has ended meanwhile


def calm(storm: Storm) -> None:
    """Let the commands that are left end, then end all workers."""
    for command in storm.commands:
        _, err = command.communicate(timeout=60)
        assert "bug in agentctl" not in err, err
    for argv in (["list"], ["doctor"], ["show", storm.names[0]]):
        assert run(*argv, check=False).code in (0, 1, 3), argv
    run("resume-queue")
    told = run("cancel", "--all", "--grace-seconds", "0.05", "--json", timeout=60)
    assert all(not one["survivors"] for one in told.json)
    wait_until(lambda: run("list", "--json").json, accept=_all_ended, timeout_s=30, what="every worker to have ended")


def _all_ended(rows: list[dict[str, str]]) -> bool:
    return all(row["status"] in ("completed", "failed", "cancelled") for row in rows)


def check(storm: Storm) -> None:
    """Check what must hold, whoever was killed."""
    task = storm.task
    listed = {row["agentInstance"] for row in run("list", "--json").json}
    executed = Counter(storm.ran.read_text(encoding="ascii").split())
    started = Counter(task.order("agent.started"))
    assert not (task.path / "shim.log").exists(), (task.path / "shim.log").read_text(encoding="utf-8")
    assert max(executed.values(), default=0) <= 1, executed
    assert max(started.values(), default=0) <= 1, started
    assert set(executed) <= set(started), "executed, but never told as started"
    for instance in listed:
        is_settled(task, instance)
    assert task.tickets() == []
    assert [file for file in files_with(task.path, SECRET) if file.suffix == ".json"] == []
    # Every slot can be had again.
    again = [start("spawn", "--queue", "--wait", "--", "true") for _ in range(3)]
    assert [one.wait(timeout=30) for one in again] == [0, 0, 0]


def weather(tmp_path: Path, seed: int, actions: int) -> None:
    task = new_task(cap=2, grace=0.05)
    set_config(task, maxConcurrentAgents=2, graceSeconds=0.05, timeoutSeconds=60)
    ran = tmp_path / "ran"
    ran.touch()
    storm = Storm(task, seed, ran)
    storm.spawn()
    for _ in range(actions):
        storm.act()
    calm(storm)
    check(storm)


def test_whatever_is_killed_the_truth_survives(root: Path, tmp_path: Path) -> None:
    weather(tmp_path, seed=int(os.environ.get("STORM_SEED", "7")), actions=20)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 112))
def test_whatever_is_killed_the_truth_survives_many_storms(root: Path, tmp_path: Path, seed: int) -> None:
    weather(tmp_path, seed, actions=80)
