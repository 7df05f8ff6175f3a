"""Figure 6: the private memory of a shim."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

from agentctl.adapters import processes
from agentctl.adapters.files import read_known
from agentctl.adapters.taskdir import TaskDir
from bench.ground import Ground
from bench.measuring import BenchError, Found, Rounds, Row, Sample

GOAL_KIB = 6144
#: How many workers all shims of the second row together have guarded before.
BEFORE = 300
_USED = 5
#: The roster is written after half a second, files are checked every second: after this, all that code has run.
_SETTLED_S = 2.5
_SLEEP = ("sleep", "600")
BARE = (sys.executable, "-I", "-S", "-c", "import signal; signal.pause()")


def measure_memory(ground: Ground, rounds: Rounds) -> Found:
    """Measure shims that guard their first worker, and shims that have guarded many."""
    if not Path("/proc/self/smaps_rollup").exists():
        return Found(missing=["6: /proc/PID/smaps_rollup: not found"])
    fresh = Sample(name="a shim", unit="KiB")
    used = Sample(name=f"a shim after {BEFORE // _USED} workers", unit="KiB")
    bare = Sample(name="python -I -S", unit="KiB")
    fresh.values, bare.values = _fresh(ground, rounds.usual)
    used.values = _used(ground)
    rows = [
        Row(
            figure=6, what=f"Private_Dirty of {sample.name}", subject=sample, neighbour=bare,
            result=sample.median, kind="median KiB", goal=GOAL_KIB,
        )
        for sample in (fresh, used)
    ]  # fmt: skip
    return Found(rows=rows)


def _fresh(ground: Ground, count: int) -> tuple[list[float], list[float]]:
    """Return the memory of `count` shims, and of as many bare interpreters."""
    task = ground.task(cap=count)
    bare = []
    try:
        for _ in range(count):
            ground.agentctl(task, "spawn", "--", *_SLEEP)
            bare.append(subprocess.Popen(BARE, stdin=subprocess.DEVNULL))
        time.sleep(_SETTLED_S)
        return _of_shims(task, count), [private_dirty(process.pid) for process in bare]
    finally:
        for process in bare:
            process.kill()
            process.wait()
        ground.drop(task)


def _used(ground: Ground) -> list[float]:
    task = ground.task(cap=_USED)
    lines = ['{"argv": ["true"], "priority": 1}'] * BEFORE + ['{"argv": ["sleep", "600"]}'] * _USED
    batch = Path(task.root.path).parent / "batch.jsonl"
    batch.write_text("\n".join(lines), encoding="utf-8")
    ground.agentctl(task, "spawn", "--batch", str(batch))
    ground.agentctl(task, "wait", *(f"true-{number}" for number in range(1, BEFORE + 1)))
    time.sleep(_SETTLED_S)
    try:
        return _of_shims(task, _USED)
    finally:
        ground.drop(task)


def _of_shims(task: TaskDir, count: int) -> list[float]:
    found = []
    for number in range(1, count + 1):
        shim = processes.identity_from(read_known(task.worker(f"sleep-{number}").shim))
        if shim is None or processes.life_of(shim) is not processes.Life.ALIVE:
            raise BenchError(f"sleep-{number} has no shim")
        found.append(private_dirty(shim.pid))
    return found


def private_dirty(pid: int) -> float:
    """Return the private memory that a process has written to, in KiB."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    matched = re.search(r"^Private_Dirty:\s+(\d+) kB$", text, re.MULTILINE)
    if matched is None:
        raise BenchError(f"no Private_Dirty of {pid}")
    return float(matched[1])
