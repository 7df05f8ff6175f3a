"""Figure 16: how long a key takes, and how much memory, in a pager of a large activity that is being read."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from bench.ground import Ground
from bench.measuring import BenchError, Found, Rounds, Row, Sample
from bench.treeing import SIZE, fill

FIGURE = 16
GOAL_MS, GOAL_KIB = 50, 153_600
#: Up and down by rows and pages, each of which changes what is visible.
_KEYS = ("j", "j", "pagedown", "k", "j", "pagedown", "pageup", "j")
_EACH_S = 0.03


def measure_pager(ground: Ground, rounds: Rounds) -> Found:
    """Measure keys and memory while an activity of 100 MB is read, and afterwards."""
    task = ground.task(cap=2)
    ground.agentctl(task, "spawn", "--wait", "--name", "large", "--", "true")
    fill(task, "large", SIZE)
    while_read, after = Sample(name="a key, while it is read"), Sample(name="a key, after it was read")
    memory = Sample(name="largest resident size", unit="KiB")
    for _ in range(max(1, rounds.usual // 5)):
        found = press("transcript", task.worker("large").activity)
        while_read.values += found.while_read
        after.values += found.after
        memory.values.append(found.kib)
    ground.drop(task)
    what = f"pager of an activity of {SIZE // 1_000_000} MB"
    return Found(
        rows=[
            Row(
                figure=FIGURE, what=f"{what}: key to picture", subject=while_read, neighbour=after,
                result=while_read.percentile(99), kind="p99 ms", goal=GOAL_MS,
            ),
            Row(
                figure=FIGURE, what=f"largest resident size of a {what}", subject=memory, neighbour=None,
                result=memory.median, kind="median KiB", goal=GOAL_KIB,
            ),
        ]
    )  # fmt: skip


class Pressed(NamedTuple):
    """How many ms each key took, and the largest resident size."""

    while_read: list[float]
    after: list[float]
    kib: float
    read_s: float | None


def press(kind: str, path: str | Path, *, seconds: float = 15) -> Pressed:
    """Press keys in a pager of a file, while it is read and afterwards."""
    argv = [sys.executable, "-m", "bench.pressing", kind, str(path)]
    root = Path(__file__).resolve().parent.parent
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        time.sleep(1)  # It has to be loaded; no key is measured before.
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for key in _KEYS:
                print(time.monotonic(), key, file=process.stdin, flush=True)
                time.sleep(_EACH_S)
        process.stdin.close()
        out = process.stdout.read()
    if process.returncode:
        raise BenchError(f"{' '.join(argv)}: exit code {process.returncode}")
    said = json.loads(out)
    while_read, after = ([ms for ms, is_read in said["taken"] if is_read == flag] for flag in (True, False))
    return Pressed(while_read, after, said["kib"], said["readS"])


if __name__ == "__main__":
    found = press(*sys.argv[1:3])
    for sample in (Sample(name="while", values=found.while_read), Sample(name="after", values=found.after)):
        print(sample.name, len(sample.values), [round(sample.percentile(p), 1) for p in (50, 90, 99, 100)], "ms")
    print(found.kib, "KiB, read in", found.read_s, "s")
