"""Figures 17 to 20: the screen of `watch` on a terminal of its own, over 1,000 workers and an activity of 100 MB."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Iterator
from typing import Protocol

from agentctl.adapters import eventlog
from agentctl.adapters.clock import now_iso
from agentctl.adapters.taskdir import TaskDir
from agentctl.domain import events as ev
from bench.filling import filled_task
from bench.ground import PATIENCE_S, Ground
from bench.measuring import BenchError, Found, Rounds, Row, Sample
from bench.treeing import SIZE, fill

WORKERS = 1000
#: The agent with the large activity, and the workers that run.
LARGE, RUNNING = "large", 10
PAINT_GOAL_MS, EVENT_GOAL_MS, KEY_GOAL_MS = 700, 100, 50
IDLE_GOAL_PERCENT, BUSY_GOAL_PERCENT, MEMORY_GOAL_KIB = 2, 20, 153_600
_ROWS, _COLUMNS = 60, 200
#: Workers that have failed stand above each other until they are seen: so many are all on the screen.
_MOST_FAILED = 40
_EVENTS_A_SECOND = 200
_MEASURED_S = 10.0
#: After this long without output the screen has drawn what there was to draw.
_QUIET_S = 0.3
_MB = SIZE // 1_000_000
IMPORT = "python -c 'import textual.app'"


class Watching:
    """A running `agentctl watch`, its terminal, and what it costs."""

    def __init__(self, ground: Ground, task: TaskDir) -> None:
        self.began = time.perf_counter()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            argv = [*ground.program, "watch", "--root", str(task.root.path)]
            os.execvpe(argv[0], argv, {**ground.environ, "TERM": "xterm-256color"})
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
        self._kept = b""

    def read_until(self, wanted: bytes, limit_s: float = PATIENCE_S) -> float:
        """Read until something is drawn; return when it was, by `perf_counter`."""
        deadline = time.perf_counter() + limit_s
        while wanted not in self._kept:
            left = deadline - time.perf_counter()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                raise BenchError(f"watch has not drawn {wanted!r} within {limit_s:g} s")
            self._kept += os.read(self.fd, 1 << 20)
        return time.perf_counter()

    def read_for(self, seconds: float) -> None:
        """Read and forget what is drawn during a time."""
        deadline = time.perf_counter() + seconds
        while (left := deadline - time.perf_counter()) > 0:
            if select.select([self.fd], [], [], left)[0]:
                os.read(self.fd, 1 << 20)
        self._kept = b""

    def press(self, key: str) -> float:
        """Press a key; return how long it took until something was drawn, in ms."""
        began = time.perf_counter()
        os.write(self.fd, key.encode())
        if not select.select([self.fd], [], [], PATIENCE_S)[0]:
            raise BenchError(f"watch has drawn nothing after {key!r}")
        return (time.perf_counter() - began) * 1000

    def cpu_s(self) -> float:
        """Return how much processor time it has used, in seconds (proc_pid_stat(5))."""
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def largest_kib(self) -> float:
        """Return its largest resident size."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
            return next(float(line.split()[1]) for line in file if line.startswith("VmHWM"))

    def close(self) -> None:
        """Press q, and wait for its end."""
        os.write(self.fd, b"q")
        deadline = time.monotonic() + 10
        while os.waitpid(self.pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
            with contextlib.suppress(OSError):
                if select.select([self.fd], [], [], 0.05)[0]:
                    os.read(self.fd, 1 << 20)
        os.close(self.fd)


def measure_drawing(ground: Ground, rounds: Rounds) -> Found:
    """Measure how long it takes until the screen is drawn, and until an event is on it."""
    task = running_task(ground)
    paints, imports = Sample(name="watch, until it is drawn"), Sample(name=IMPORT)
    for _ in range(rounds.usual):
        with _watching(ground, task) as screen:
            paints.values.append((screen.read_until(b"busy-9") - screen.began) * 1000)
        imports.values.append(ground.timed([sys.executable, "-c", "import textual.app"]).ms)
    seen = Sample(name="from the log to the screen")
    with _watching(ground, task) as screen:
        screen.read_until(b"busy-9")
        screen.read_for(1)
        seen.values += _events(screen, task, min(rounds.waits // 2, _MOST_FAILED))
    ground.drop(task)
    return Found(
        rows=[
            _row(17, f"watch of {WORKERS:,} workers: first drawn", paints, "median ms", PAINT_GOAL_MS, imports),
            _row(17, "an event on disk, until it is on the screen", seen, "median ms", EVENT_GOAL_MS),
        ]
    )


def measure_keys(ground: Ground, rounds: Rounds) -> Found:
    """Measure how long keys take over a large activity."""
    task, keys = _large_task(ground), Sample(name="from a key to the screen")
    with _watching(ground, task) as screen:
        _open_large(screen)
        keys.values += _keys(screen, rounds.waits * 2)
    ground.drop(task)
    return Found(rows=[_row(18, f"a key, with an activity of {_MB} MB open", keys, "p99 ms", KEY_GOAL_MS)])


def measure_processor(ground: Ground, rounds: Rounds) -> Found:
    """Measure what the screen costs while workers only run, whose times are drawn each second, and under load."""
    idle, busy = Sample(name="nothing happens", unit="%"), Sample(name=f"{_EVENTS_A_SECOND} events a second", unit="%")
    task = running_task(ground)
    with _watching(ground, task) as screen:
        screen.read_until(b"busy-9")
        screen.read_for(3)
        for _ in range(max(1, rounds.usual // 5)):
            idle.values.append(processor_percent(screen, lambda: screen.read_for(_MEASURED_S)))
            busy.values.append(processor_percent(screen, lambda: _make_events(screen, task)))
            screen.read_for(3)
    ground.drop(task)
    return Found(
        rows=[
            _row(19, f"processor time of watch while {RUNNING} workers run", idle, "percent", IDLE_GOAL_PERCENT),
            _row(19, f"the same at {_EVENTS_A_SECOND} events a second", busy, "percent", BUSY_GOAL_PERCENT),
        ]
    )


def measure_size(ground: Ground, rounds: Rounds) -> Found:
    """Measure the memory of the screen over a large activity."""
    task, memory = _large_task(ground), Sample(name="largest resident size", unit="KiB")
    for _ in range(max(1, rounds.usual // 5)):
        with _watching(ground, task) as screen:
            _open_large(screen)
            screen.read_for(1)
            memory.values.append(screen.largest_kib())
    ground.drop(task)
    what = f"largest resident size of watch, with an activity of {_MB} MB open"
    return Found(rows=[_row(20, what, memory, "median KiB", MEMORY_GOAL_KIB)])


def running_task(ground: Ground, workers: int = WORKERS) -> TaskDir:
    """Return a task of many ended workers and some that run."""
    task = filled_task(ground, workers, cap=2 * RUNNING)
    _start_running(ground, task)
    return task


def _start_running(ground: Ground, task: TaskDir) -> None:
    for number in range(RUNNING):
        ground.agentctl(task, "spawn", "--name", f"busy-{number}", "--", "sleep", "1000")


def _row(figure: int, what: str, sample: Sample, kind: str, goal: float, neighbour: Sample | None = None) -> Row:
    result = sample.percentile(99) if kind == "p99 ms" else sample.median
    return Row(figure=figure, what=what, subject=sample, neighbour=neighbour, result=result, kind=kind, goal=goal)


@contextlib.contextmanager
def _watching(ground: Ground, task: TaskDir) -> Iterator[Watching]:
    screen = Watching(ground, task)
    try:
        yield screen
    finally:
        screen.close()


def _events(screen: Watching, task: TaskDir, number: int) -> list[float]:
    """Append the events of workers that fail at once; return how long each took until its name was drawn, in ms."""
    found = []
    for place in range(number):
        name = f"seen-{place}-{os.urandom(3).hex()}"
        payloads = ((ev.QUEUED, {"command": "true"}), (ev.STARTED, {"pid": 1}), (ev.FAILED, {"reason": "signal"}))
        events = [ev.make_event(now_iso(), kind, task.id, "bench", payload, name) for kind, payload in payloads]
        began = time.perf_counter()
        eventlog.append(task.events, events)
        found.append((screen.read_until(name.encode(), limit_s=10) - began) * 1000)
        screen.read_for(_QUIET_S)
    return found


class Measurable(Protocol):
    """A program whose processor time is measured."""

    def cpu_s(self) -> float:
        """Return how much it has used, in seconds."""


def processor_percent(program: Measurable, during: Callable[[], object]) -> float:
    """Return the processor time that a program uses during something, in percent of one processor."""
    began, used = time.perf_counter(), program.cpu_s()
    during()
    return (program.cpu_s() - used) / (time.perf_counter() - began) * 100


def _make_events(screen: Watching, task: TaskDir) -> None:
    """Append events of running workers, each of which changes a visible row."""
    began = time.perf_counter()
    for number in range(int(_MEASURED_S * _EVENTS_A_SECOND)):
        kind = ev.STALLED if number // RUNNING % 2 else ev.UNSTALLED
        event = ev.make_event(now_iso(), kind, task.id, "bench", {}, f"busy-{number % RUNNING}")
        eventlog.append(task.events, [event], durable=False)
        screen.read_for(max(0.0, (number + 1) / _EVENTS_A_SECOND - (time.perf_counter() - began)))


def _keys(screen: Watching, number: int) -> list[float]:
    """Press keys that move the cursor through the open activity; return how long each took, in ms."""
    found = []
    for place in range(number):
        found.append(screen.press("j" if place % 40 < 20 else "k"))
        screen.read_for(0.05)
    return found


def _large_task(ground: Ground) -> TaskDir:
    """Return a task of many ended workers, and one with a large activity: it has failed, so it stands in the list."""
    task = filled_task(ground, WORKERS)
    ground.timed([*ground.command(task, "spawn"), "--name", LARGE, "--", "sh", "-c", "sleep 0; exit 3"])
    ground.timed(["sh", "-c", f"{' '.join(ground.command(task, 'wait', LARGE))}; true"])
    fill(task, LARGE, SIZE)
    return task


def _open_large(screen: Watching) -> None:
    """Open the large activity in the list, and wait until it is drawn."""
    screen.read_until(LARGE.encode())
    screen.read_for(_QUIET_S)
    # While tasks are read, the cursor may stay on a heading: the last line is that of what is done, and it above it.
    for key in "Gk":
        os.write(screen.fd, key.encode())
        screen.read_for(_QUIET_S)
    screen.press("l")
    screen.read_until(b"[explore]", limit_s=60)
