"""Figures 8, 9 and 29: the time from `interact respond` to the agent program, and the memory of a driver meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

from agentctl.adapters import processes
from agentctl.adapters.extras import install_command
from agentctl.adapters.files import read_known
from agentctl.adapters.processes import Identity
from agentctl.adapters.taskdir import TaskDir
from bench.agent import TOLD
from bench.ground import REPOSITORY, Ground, wait_until
from bench.guarding import BARE, private_dirty
from bench.measuring import BenchError, Found, Rounds, Row, Sample, Turn, alternate

_LOOKS = 3
ANSWER_GOAL_MS, MEMORY_GOAL_KIB, ACP_GOAL_KIB = 50, 25 * 1024, 45 * 1024
#: Driver -> what plays its program.
_AGENTS = {"claude": REPOSITORY / "bench" / "agent.py", "opencode": REPOSITORY / "bench" / "acp_agent.py"}
#: Writes a byte when it is ready, reads a line, and writes down when it has read it.
_READER = """
import os, sys, time
os.write(1, b".")
line = os.read(0, 4096)
told = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT, 0o600)
os.write(told, b"%d" % time.monotonic_ns())
"""


def measure_answer(ground: Ground, rounds: Rounds) -> Found:
    """Measure how long an answer takes to reach the agent program and, to compare, a line to reach a child's stdin."""
    task = ground.task(cap=5)
    answer, line = Sample(name="respond's return to the program"), Sample(name="write(2) to the reader of a pipe")
    alternate(
        rounds.usual,
        Turn(lambda: [_by_respond(ground, task)], answer),
        Turn(lambda: [_by_pipe(ground)], line),
    )
    ground.drop(task)
    row = Row(
        figure=8, what="an answer reaches the agent program", subject=answer, neighbour=line,
        result=answer.median, kind="median ms", goal=ANSWER_GOAL_MS,
    )  # fmt: skip
    note = "8: counted from the end of the process `interact respond`; below 0, the program had the answer before that"
    return Found(rows=[row], notes=[note])


def measure_driver(ground: Ground, rounds: Rounds) -> Found:
    """Measure drivers whose agents wait for an answer and, to compare, bare interpreters."""
    return _measure_memory(ground, rounds, 9, "claude", "a driver", MEMORY_GOAL_KIB)


def measure_acp_driver(ground: Ground, rounds: Rounds) -> Found:
    """Measure drivers of programs that speak ACP, which load the protocol's library."""
    if find_spec("acp") is None:
        return Found(missing=[f"29: the library of ACP is not installed ({install_command('acp')})"])
    return _measure_memory(ground, rounds, 29, "opencode", "a driver over ACP", ACP_GOAL_KIB)


def _measure_memory(ground: Ground, rounds: Rounds, figure: int, driver: str, what: str, goal: int) -> Found:
    if not Path("/proc/self/smaps_rollup").exists():
        return Found(missing=[f"{figure}: /proc/PID/smaps_rollup: not found"])
    task = ground.task(cap=5)
    subject, bare = Sample(name=what, unit="KiB"), Sample(name="python -I -S", unit="KiB")
    alternate(
        rounds.usual,
        Turn(lambda: [_of_driver(ground, task, driver)], subject),
        Turn(lambda: [of_bare()], bare),
    )
    ground.drop(task)
    row = Row(
        figure=figure, what=f"Private_Dirty of {what}", subject=subject, neighbour=bare,
        result=subject.median, kind="median KiB", goal=goal,
    )  # fmt: skip
    return Found(rows=[row])


def _by_respond(ground: Ground, task: TaskDir) -> float:
    told = ground.folder() / "told"
    instance = _asking(ground, task, told)
    ground.agentctl(task, "interact respond", instance, "--id", "q1", "allow")
    returned = time.monotonic_ns()
    wait_until(lambda: told.exists() and told.stat().st_size > 0)
    ground.agentctl(task, "wait", instance)
    ground.settle(task)
    return (int(told.read_bytes()) - returned) / 1e6


def _by_pipe(ground: Ground) -> float:
    told = ground.folder() / "told"
    argv = [sys.executable, "-I", "-S", "-c", _READER, str(told)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ground.environ) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        reader.stdout.read(1)
        written = time.monotonic_ns()
        os.write(reader.stdin.fileno(), b"an answer\n")
        reader.wait()
    return (int(told.read_bytes()) - written) / 1e6


def _asking(ground: Ground, task: TaskDir, told: Path, driver: str = "claude") -> str:
    """Start an agent; return its instance once it has asked for permission."""
    path = f"{_programs(ground, driver)}{os.pathsep}{ground.environ['PATH']}"
    command = ground.command(task, "spawn", "--driver", driver, "--permissions", "ask", "do it")
    instance = ground.timed(command, env={"PATH": path, TOLD: str(told)}).out.split()[0]
    folder = Path(task.worker(instance).interactions)
    wait_until(lambda: folder.is_dir() and any(path.suffix == ".json" for path in folder.iterdir()))
    return instance


def _programs(ground: Ground, driver: str) -> Path:
    """Return a folder with the agent program under the name that its driver looks for."""
    folder = ground.disk / "bin"
    folder.mkdir(exist_ok=True)
    program = folder / driver
    if not program.exists():
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{_AGENTS[driver]}" "$@"\n', encoding="utf-8")
        program.chmod(0o700)
    return folder


def _of_driver(ground: Ground, task: TaskDir, driver: str) -> float:
    instance = _asking(ground, task, ground.folder() / "told", driver)
    found = private_dirty(_driver_of(task, instance).pid)
    ground.agentctl(task, "cancel", instance)
    ground.settle(task)
    return found


def _driver_of(task: TaskDir, instance: str) -> Identity:
    driver = processes.identity_from(read_known(task.worker(instance).process))
    if driver is None or processes.life_of(driver) is not processes.Life.ALIVE:
        raise BenchError(f"{instance} has no driver")
    return driver


def of_bare() -> float:
    """Return the private memory of a bare interpreter, in KiB."""
    with subprocess.Popen(BARE, stdin=subprocess.DEVNULL) as process:
        wait_until(lambda: all(_sleeps(process.pid) for _ in range(_LOOKS)))
        try:
            return private_dirty(process.pid)
        finally:
            process.kill()


def _sleeps(pid: int) -> bool:
    stat = processes.read_stat(pid)
    return stat is not None and stat.state == "S"
