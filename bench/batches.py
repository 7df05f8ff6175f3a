"""Figure 4: 500 workers that do nothing, at a cap of 8, until all of them have ended."""

from __future__ import annotations

import json
from pathlib import Path

from bench.ground import Ground
from bench.measuring import Found, Rounds, Sample, Turn, alternate, number, ratio
from bench.rivals import CAP, JOBS, OTHERS, PARALLEL, Rival, kind_of_disk

GOAL = 1.2


def measure_batch(ground: Ground, rounds: Rounds) -> Found:
    """Measure on disk and, if there is one, on a file system in memory."""
    found = Found(
        missing=[f"4: {rival.name}: not found" for rival in (PARALLEL, *OTHERS) if not rival.is_installed],
        notes=[
            f"4: medians of {rounds.batches} rounds (--full: 15); task and daemons are started before the measurement",
            "4: ext4 skips inodes that were freed in the last minutes: after `make test` it takes twice as long",
        ],
    )
    rivals = [rival for rival in (PARALLEL, *OTHERS) if rival.is_installed]
    places = {"on disk": ground.disk}
    if ground.memory is None:
        found.missing.append("4: a file system in memory: not found")
    else:
        places["in memory"] = ground.memory
    for where, below in places.items():
        found += _measure_in(ground, rounds, rivals, f"{where} ({kind_of_disk(below)})", below)
    return found


def _measure_in(ground: Ground, rounds: Rounds, rivals: list[Rival], where: str, below: Path) -> Found:
    own, spawned = Sample(name="spawn --batch, wait-all"), Sample(name="spawn --batch")
    theirs = {rival.name: Sample(name=rival.name) for rival in rivals}
    turns = [Turn(lambda: _measure_own(ground, below), own, spawned)]
    turns += [
        Turn(lambda rival=rival: [rival.measure(ground, below)], theirs[rival.name])  # type: ignore[misc]
        for rival in rivals
    ]
    alternate(rounds.batches, *turns)
    what = f"{JOBS} x true at {CAP}, {where}"
    return Found(
        rows=[ratio(4, what, own, theirs[rival.name], GOAL if rival is PARALLEL else None) for rival in rivals],
        notes=[f"4: {where}: spawn --batch had returned after {number(spawned.median)} ms"],
    )


def _measure_own(ground: Ground, below: Path) -> list[float]:
    task = ground.task(CAP, below)
    batch = Path(task.root.path).parent / "batch.jsonl"
    batch.write_text('{"argv": ["true"]}\n' * JOBS, encoding="utf-8")
    spawned = ground.agentctl(task, "spawn", "--batch", str(batch), "--json")
    waited = ground.agentctl(task, "wait-all", "--json")
    ends = json.loads(waited.out)
    assert len(ends) == JOBS, f"{len(ends)} of {JOBS} workers ended"
    ground.drop(task)
    return [spawned.ms + waited.ms, spawned.ms]
