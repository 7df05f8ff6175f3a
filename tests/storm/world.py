"""The world of a storm: its task, the programs in it, what is written down by them, and the commands that it runs."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import psutil

from tests import support
from tests.faults import Faults
from tests.processes import words_of
from tests.steps import Task, new_task
from tests.support import REPOSITORY, WORKERS, start

CAP = 3
GRACE_S = 0.05
#: So many commands run at once.
_COMMANDS = 4
_PROGRAMS = {"claude": "agent_program", "codex": "codex_program"}
#: What an agent does in a turn: the same as a command, and then it answers.
_TURN = """
import sys
sys.path.insert(0, {workers!r})
import time, counted
with counted.at_work({ledger!r}):
    time.sleep(0.2)
"""


class Ran(NamedTuple):
    """A command of agentctl that was started."""

    argv: tuple[str, ...]
    process: subprocess.Popen[str]
    #: What it prints: files, since nobody reads a pipe meanwhile.
    out: Path
    err: Path


class Told(NamedTuple):
    """A command that has ended; its code is negative if it was killed."""

    argv: tuple[str, ...]
    code: int
    out: str
    err: str


class World:
    """A task and what surrounds it.

    Attributes:
        faults: The layer that is in all processes of agentctl.
        package: The copy of agentctl that they run.
        names: Those of all workers that were to be started, in this order.
        kept: Those of the agents that are kept after their turn.
        cancelled: Whom somebody has cancelled.
        kills: How many shims and workers were killed, by the reason that this gives an end.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.folder = Path(os.environ["HOME"]).parent
        (self.folder / "layer").mkdir()
        self.faults = Faults(self.folder / "layer")
        self.pristine, self.package = self.folder / "pristine" / "agentctl", self.folder / "installed" / "agentctl"
        for copy in (self.pristine, self.package):
            shutil.copytree(REPOSITORY / "agentctl", copy)
        shutil.copytree(REPOSITORY / "task_templates", self.package.with_name("task_templates"))
        os.environ["PYTHONPATH"] = str(self.package.parent)
        self.ledger = self.folder / "ledger"
        self.ledger.mkdir()
        for number in range(CAP):
            (self.ledger / f"place-{number + 1}").touch()
        self._put_programs()
        support.PROGRAM = self.faults.program
        self.task: Task = new_task(cap=CAP, grace=GRACE_S)
        self.root = self.task.path.parent.parent
        self.names: list[str] = []
        self.kept: list[str] = []
        self.cancelled: set[str] = set()
        self.kills: Counter[str | None] = Counter()
        self.told: list[Told] = []
        self._running: list[Ran] = []
        self._many, self._said = 0, self.folder / "said"
        self._said.mkdir()

    def chance(self, of: str) -> random.Random:
        """Return the chance of one part of the storm: what another part does does not move it."""
        return random.Random(f"{self._seed}/{of}")

    def _put_programs(self) -> None:
        programs = self.folder / "bin"
        programs.mkdir()
        for name, program in _PROGRAMS.items():
            file = programs / name
            file.write_text(f'#!/bin/sh\nexec {sys.executable} {WORKERS / program}.py "$@"\n', encoding="utf-8")
            file.chmod(0o700)
        os.environ["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"
        turn = _TURN.format(workers=str(WORKERS), ledger=str(self.ledger))
        for driver, answer in (("claude", 'me.answer("done")'), ("codex", "")):
            self.turn_of(driver).write_text(f"{turn}{answer}\n", encoding="utf-8")

    def turn_of(self, driver: str) -> Path:
        """Return the script of a turn of an agent."""
        return self.folder / f"turn-{driver}.py"

    def new_name(self, prefix: str) -> str:
        """Return a new name for a worker."""
        self.names.append(f"{prefix}{len(self.names)}")
        if any("--all" in ran.argv for ran in self.running()):  # It may find this one, too.
            self.cancelled.add(self.names[-1])
        return self.names[-1]

    def command(self, *argv: str | Path) -> None:
        """Have a command run, as soon as not too many do."""
        while len(self.running()) >= _COMMANDS:
            self.reap(0.05)
        self._many += 1
        out, err = (self._said / f"{self._many}.{kind}" for kind in ("out", "err"))
        with out.open("wb") as told, err.open("wb") as problems:
            process = start(*argv, stdout=told.fileno(), stderr=problems.fileno())
        self._running.append(Ran(tuple(map(str, argv)), process, out, err))

    def running(self) -> list[Ran]:
        """Return the commands that run; what the others have said is kept."""
        for ran in [one for one in self._running if one.process.poll() is not None]:
            self._ended(ran)
        return list(self._running)

    def reap(self, within_s: float) -> None:
        """Wait for the oldest command for a while."""
        if self._running:
            ran = self._running[0]
            try:
                ran.process.wait(within_s)
            except subprocess.TimeoutExpired:
                return
            self._ended(ran)

    def _ended(self, ran: Ran) -> None:
        self._running.remove(ran)
        out, err = (file.read_text(encoding="utf-8", errors="replace") for file in (ran.out, ran.err))
        self.told.append(Told(ran.argv, ran.process.returncode, out, err))

    def mine(self, processes: Iterable[psutil.Process]) -> list[psutil.Process]:
        """Return those of these processes that name the task."""
        return [process for process in processes if any(str(self.task.path) in word for word in words_of(process))]
