"""Figures 3 and 33: `list --json` and `join` of many ended workers."""

from __future__ import annotations

from bench.filling import FILLED, filled_task
from bench.ground import TYPER, Ground
from bench.measuring import Found, Rounds, Sample, Turn, alternate, ratio

GOALS = {1000: 1.5, 10_000: 3.0}
#: How many workers are joined, beside half as many: twice as long, if each costs the same.
JOINED, BESIDE, MOST_JOIN = 400, 200, 2.2


def measure_list(ground: Ground, rounds: Rounds) -> Found:
    """Measure `list --json` of tasks of all sizes and, to compare, the import of typer."""
    tasks = {workers: filled_task(ground, workers) for workers in GOALS}
    samples = {workers: Sample(name=f"list --json of {workers:,}") for workers in GOALS}
    typer = Sample(name=TYPER)
    turns = [
        Turn(lambda task=task: [ground.agentctl(task, "list", "--json").ms], samples[workers])  # type: ignore[misc]
        for workers, task in tasks.items()
    ]
    alternate(rounds.usual, *turns, Turn(lambda: [ground.import_typer().ms], typer))
    for task in tasks.values():
        ground.drop(task)
    return Found(
        rows=[
            ratio(3, f"list --json of {workers:,} ended workers", samples[workers], typer, goal)
            for workers, goal in GOALS.items()
        ],
        notes=[FILLED],
    )


def measure_join(ground: Ground, rounds: Rounds) -> Found:
    """Measure `join` of tasks of two sizes: a report of twice as many workers must not take more than twice as long."""
    tasks = {workers: filled_task(ground, workers) for workers in (JOINED, BESIDE)}
    samples = {workers: Sample(name=f"join of {workers}") for workers in tasks}
    turns = [
        Turn(lambda task=task: [ground.agentctl(task, "join").ms], samples[workers])  # type: ignore[misc]
        for workers, task in tasks.items()
    ]
    alternate(rounds.usual, *turns)
    for task in tasks.values():
        ground.drop(task)
    what = f"join of {JOINED} beside {BESIDE}"
    return Found(rows=[ratio(33, what, samples[JOINED], samples[BESIDE], MOST_JOIN)])
