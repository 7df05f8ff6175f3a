"""Figures 1 and 5: the time until a spawned worker runs, in a new task and in one of 5,000 ended workers."""

from __future__ import annotations

import shutil
import sys

from agentctl.adapters.taskdir import TaskDir
from bench.filling import filled_task
from bench.ground import TYPER, Ground, wait_until
from bench.measuring import Found, Rounds, Sample, Turn, alternate, ratio

MANY, FEW = 5000, 4


def measure_spawn(ground: Ground, rounds: Rounds) -> Found:
    """Measure figure 1: the time until the worker runs, as it says itself, and until the command has returned."""
    task = ground.task(cap=5)
    clock = _clock(ground)
    runs = Sample(name="until the worker's first word")
    returns = Sample(name="until spawn has returned")
    typer = Sample(name=TYPER)

    def spawn() -> tuple[float, float]:
        ran = ground.agentctl(task, "spawn", "--", *clock)
        instance = ran.out.split()[0]
        ground.settle(task)
        stdout = task.worker(instance).stdout
        wait_until(lambda: stdout.read_bytes().endswith(b"\n"))
        return (int(stdout.read_bytes()) - ran.began_ns) / 1e6, ran.ms

    alternate(rounds.usual, Turn(spawn, runs, returns), Turn(lambda: [ground.import_typer().ms], typer))
    ground.drop(task)
    return Found(
        rows=[
            ratio(1, "spawn, until the worker runs", runs, typer, goal=1.8),
            ratio(1, "spawn, until the command has returned", returns, typer, goal=1.8),
        ],
        notes=[f"1: the worker is `{' '.join(clock)[:60]}`: the time it prints is compared with that before the spawn"],
    )


def _clock(ground: Ground) -> list[str]:
    """Return the argv of a program that prints the nanoseconds since 1970 as early as it can."""
    argv = [shutil.which("date") or "date", "+%s%N"]
    if shutil.which("date") and ground.timed(argv).out.strip().isdigit():
        return argv
    return [sys.executable, "-I", "-S", "-c", "import time; print(time.time_ns())"]


def measure_late_spawn(ground: Ground, rounds: Rounds) -> Found:
    """Measure figure 5: a spawn into a task of 5,000 ended workers, and one into a task of four."""
    crowded, fresh = filled_task(ground, MANY), filled_task(ground, FEW)
    late, early = Sample(name=f"spawn number {MANY:,} and on"), Sample(name=f"spawn number {FEW + 1} and on")

    def spawn(task: TaskDir) -> list[float]:
        ms = ground.agentctl(task, "spawn", "--", "true").ms
        ground.settle(task)
        return [ms]

    alternate(rounds.usual, Turn(lambda: spawn(crowded), late), Turn(lambda: spawn(fresh), early))
    for task in (crowded, fresh):
        ground.drop(task)
    return Found(rows=[ratio(5, f"the {MANY:,}th spawn to the {FEW + 1}th", late, early, goal=1.2)])
