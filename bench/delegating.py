"""Figures 11 and 12: tasks that a Python program delegates: one that it waits for, and a hundred at once."""

from __future__ import annotations

import sys
from pathlib import Path

from bench.ground import REPOSITORY, Ground
from bench.measuring import Found, Rounds, Row, Sample, Turn, alternate, ratio

_PROGRAM = Path(__file__).with_name("delegate.py")
_COUNT, _CAP = 100, 16
_ONE_S = 0.2
#: How long the children of a fan-out sleep: not at all, and the shortest work that is worth a process of its own.
_WORK_S = (0.0, 0.25)
OVERHEAD_GOAL_MS, FAN_OUT_GOAL = 40, 3


def measure_delegation(ground: Ground, rounds: Rounds) -> Found:
    """Measure by how much a blocking task takes longer than its child."""
    own, child = Sample(name="execute_task, less the child's time"), Sample(name="the child alone")
    alternate(
        rounds.usual,
        Turn(lambda: [_measure(ground, "executor", 1, _ONE_S) - _ONE_S * 1000], own),
        Turn(lambda: [_measure(ground, "child", 1, _ONE_S)], child),
    )
    row = Row(
        figure=11, what="a blocking task by Python, over the child's own time", subject=own, neighbour=child,
        result=own.median, kind="median ms", goal=OVERHEAD_GOAL_MS,
    )  # fmt: skip
    return Found(rows=[row])


def measure_fan_out(ground: Ground, rounds: Rounds) -> Found:
    """Measure a hundred tasks at once against asyncio's own subprocesses."""
    found = Found(notes=["12: the goal is for children that do some work; `true` shows what a worker itself costs"])
    for seconds in _WORK_S:
        own, theirs = Sample(name="execute_parallel"), Sample(name="asyncio subprocesses")
        alternate(
            rounds.batches,
            Turn(lambda seconds=seconds: [_measure(ground, "executor", _COUNT, seconds)], own),  # type: ignore[misc]
            Turn(lambda seconds=seconds: [_measure(ground, "asyncio", _COUNT, seconds)], theirs),  # type: ignore[misc]
        )
        what = f"{_COUNT} x {f'sleep {seconds:g}' if seconds else 'true'} at {_CAP}"
        found.rows.append(ratio(12, what, own, theirs, FAN_OUT_GOAL if seconds else None))
    return found


def _measure(ground: Ground, how: str, count: int, seconds: float) -> float:
    folder = ground.folder()
    own = {"AGENTCTL_ROOT": str(folder / ".agentctl"), "PYTHONPATH": str(REPOSITORY)}
    argv = [sys.executable, str(_PROGRAM), how, str(count), str(_CAP), str(seconds)]
    return float(ground.timed(argv, cwd=folder, env=own).out)
