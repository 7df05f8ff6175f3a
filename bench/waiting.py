"""Figure 2: the time from a worker's exit to the line that a waiting `wait-any` prints."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

from agentctl.adapters import processes
from agentctl.adapters.taskdir import TaskDir
from bench.ground import Ground, wait_until
from bench.measuring import BenchError, Found, Rounds, Row, Sample, Turn, alternate

#: Waits for its gate, writes down the time (CLOCK_MONOTONIC, the same for all processes), and exits.
_WORKER = """
import os, sys, time
gate = os.open(sys.argv[1], os.O_RDONLY)
told = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT, 0o600)
os.write(told, b"%d" % time.monotonic_ns())
os._exit(0)
"""
_LOOKS = 3


def measure_wait(ground: Ground, rounds: Rounds) -> Found:
    """Measure two ways to learn of an exit: `wait-any`, and waitpid(2) in the parent."""
    task = ground.task(cap=5)
    line, parent = Sample(name="exit to wait-any's line"), Sample(name="exit to the parent's waitpid(2)")
    alternate(
        rounds.waits,
        Turn(lambda: [_by_wait_any(ground, task)], line),
        Turn(lambda: [_by_parent(ground)], parent),
    )
    ground.drop(task)
    what = "exit of a worker to wait-any's line"
    return Found(
        rows=[
            Row(
                figure=2, what=what, subject=line, neighbour=parent, result=line.median, kind="median ms", goal=10
            ),
            Row(
                figure=2, what=f"{what}, p99 of {rounds.waits}", subject=line, neighbour=parent,
                result=line.percentile(99), kind="p99 ms", goal=50,
            ),
        ],
        notes=["2: the worker reads CLOCK_MONOTONIC just before it exits; the reader of the line, just after"],
    )  # fmt: skip


def _by_wait_any(ground: Ground, task: TaskDir) -> float:
    argv, gate, told = worker_at_a_gate(ground)
    instance = ground.agentctl(task, "spawn", "--", *argv).out.split()[0]
    command = ground.command(task, "wait-any")
    with ground.started(command, stdout=subprocess.PIPE) as waiter:
        assert waiter.stdout is not None
        wait_until(lambda: all(_is_watching(waiter.pid) for _ in range(_LOOKS)))
        opened = os.open(gate, os.O_WRONLY)
        line = os.read(waiter.stdout.fileno(), 4096)
        now = time.monotonic_ns()
        os.close(opened)
        waiter.wait()
    if not line.startswith(instance.encode()):
        raise BenchError(f"wait-any said {line!r} instead of {instance}")
    ground.settle(task)
    return (now - int(told.read_bytes())) / 1e6


def _by_parent(ground: Ground) -> float:
    argv, gate, told = worker_at_a_gate(ground)
    with ground.started(argv) as worker:
        opened = os.open(gate, os.O_WRONLY)
        worker.wait()
        now = time.monotonic_ns()
        os.close(opened)
    return (now - int(told.read_bytes())) / 1e6


def worker_at_a_gate(ground: Ground) -> tuple[list[str], Path, Path]:
    """Return a worker's command line, the FIFO that it waits for, and the file for the time of its exit."""
    folder = ground.folder()
    gate, told = folder / "gate", folder / "told"
    os.mkfifo(gate, 0o600)
    return [sys.executable, "-I", "-S", "-c", _WORKER, str(gate), str(told)], gate, told


def _is_watching(pid: int) -> bool:
    """Tell whether a process sleeps and has an inotify watch (proc_pid_fdinfo(5))."""
    stat = processes.read_stat(pid)
    if stat is None:
        raise BenchError("wait-any ended before there was anything to wait for")
    watches = False
    with contextlib.suppress(OSError):
        watches = any("inotify wd:" in info.read_text() for info in Path(f"/proc/{pid}/fdinfo").iterdir())
    return watches and stat.state == "S"
