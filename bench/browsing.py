"""Figures 21 to 25: `serve` over 1,000 workers, as a browser sees it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agentctl.adapters import eventlog
from agentctl.adapters.clock import now_iso
from agentctl.adapters.taskdir import TaskDir
from agentctl.domain import events as ev
from bench.ground import PATIENCE_S, REPOSITORY, Ground
from bench.listeners import CURSOR, connected
from bench.measuring import BenchError, Found, Rounds, Row, Sample, Turn, alternate
from bench.watching import RUNNING, WORKERS, processor_percent, running_task

EVENT_GOAL_MS, TASK_GOAL_MS, START_GOAL_MS, MEMORY_GOAL_KIB = 100, 20, 700, 122_880
CLIENTS, EVENTS_A_SECOND = 50, 200
_FEW = 10
_MEASURED_S = 10.0
_QUIET_S = 0.1
IMPORT = "python -c 'import starlette.applications, uvicorn'"
_CROWD = f"{CLIENTS} clients, {EVENTS_A_SECOND} events a second"


class Served:
    """A running `agentctl serve`, and what it costs."""

    def __init__(self, ground: Ground, task: TaskDir) -> None:
        self.began = time.perf_counter()
        argv = [*ground.program, "serve", "--port", "0", "--json", "--root", str(task.root.path)]
        self.process = subprocess.Popen(argv, env=ground.environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        said = json.loads(self.process.stdout.readline() or "{}")
        if "url" not in said:
            raise BenchError("serve has not said where it is")
        self.port = int(urlsplit(said["url"]).port or 0)
        self.token = Path(said["tokenFile"]).read_text(encoding="utf-8").strip()
        self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)

    def get(self, path: str, **headers: str) -> tuple[int, bytes, str | None]:
        """Ask over the connection that is kept; return the status, the body and its ETag."""
        headers["Authorization"] = f"Bearer {self.token}"
        self._connection.request("GET", path, headers={key.replace("_", "-"): text for key, text in headers.items()})
        answer = self._connection.getresponse()
        return answer.status, answer.read(), answer.headers.get("ETag")

    def cpu_s(self) -> float:
        """Return how much processor time it has used, in seconds (proc_pid_stat(5))."""
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def largest_kib(self) -> float:
        """Return its largest resident size."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return next(float(line.split()[1]) for line in file if line.startswith("VmHWM"))

    def close(self) -> None:
        """End it."""
        self._connection.close()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


class Stream:
    """A client of the stream."""

    def __init__(self, served: Served) -> None:
        self._socket: socket.socket = connected(served.port, served.token)
        self._kept = b""
        self.read_until(CURSOR)

    def read_until(self, *wanted: bytes, limit_s: float = PATIENCE_S) -> float:
        """Read until all of this has come, and forget it; return when it had, by `perf_counter`."""
        deadline = time.perf_counter() + limit_s
        while not all(one in self._kept for one in wanted):
            left = deadline - time.perf_counter()
            if left <= 0 or not select.select([self._socket], [], [], left)[0]:
                raise BenchError(f"the stream has not sent {wanted!r} within {limit_s:g} s")
            self._kept += self._read()
        at, self._kept = time.perf_counter(), b""
        return at

    def read_for(self, seconds: float) -> None:
        """Read and forget what comes during a time."""
        deadline = time.perf_counter() + seconds
        while (left := deadline - time.perf_counter()) > 0:
            if select.select([self._socket], [], [], left)[0]:
                self._read()
        self._kept = b""

    def _read(self) -> bytes:
        data = self._socket.recv(1 << 18)
        if not data:
            raise BenchError("serve has closed the stream")
        return data

    def close(self) -> None:
        """Leave."""
        self._socket.close()


def measure_arrival(ground: Ground, rounds: Rounds) -> Found:
    """Measure the time from an event on disk to a client that has it, and the worker's row that it changes."""
    task, small = running_task(ground), running_task(ground, _FEW)
    alone, few = Sample(name=f"{WORKERS:,} workers, 1 client"), Sample(name=f"{_FEW} workers, 1 client")
    crowded = Sample(name=_CROWD)
    with _serving(ground, task) as served, _serving(ground, small) as other:
        streams = contextlib.closing(Stream(served)), contextlib.closing(Stream(other))
        with streams[0] as stream, streams[1] as second:
            turns = Turn(lambda: [_arrival(stream, task)], alone), Turn(lambda: [_arrival(second, small)], few)
            alternate(rounds.waits // 2, *turns)
            with _crowd(served, task):
                stream.read_for(1)
                crowded.values += [_arrival(stream, task) for _ in range(rounds.waits // 2)]
    for one in (task, small):
        ground.drop(one)
    what = f"an event on disk, until a page of {WORKERS:,} workers has it"
    return Found(
        rows=[
            _row(21, what, alone, "median ms", EVENT_GOAL_MS, few),
            _row(21, f"the same with {_CROWD}", crowded, "median ms", EVENT_GOAL_MS),
        ]
    )


def measure_task(ground: Ground, rounds: Rounds) -> Found:
    """Measure a request for a task: each after an event that must be in its answer, and without any news."""
    task = running_task(ground)
    fresh, same, health = Sample(name="GET /tasks/T"), Sample(name="If-None-Match"), Sample(name="GET /healthz")
    with _serving(ground, task) as served:
        turns = [
            Turn(lambda: [_get_fresh(served, task)], fresh),
            Turn(lambda: [_get_same(served, task)], same),
            Turn(lambda: [_get(served, "/healthz")[0]], health),
        ]
        alternate(rounds.waits // 2, *turns)
    ground.drop(task)
    what = f"a task of {WORKERS:,} workers"
    return Found(
        rows=[
            _row(22, f"GET {what}, just after an event", fresh, "median ms", TASK_GOAL_MS, health),
            _row(22, f"GET {what} that the client has already", same, "median ms", TASK_GOAL_MS, health),
        ]
    )


def measure_start(ground: Ground, rounds: Rounds) -> Found:
    """Measure the time from the start of the server to its first answer."""
    task = running_task(ground)
    starts, imports = Sample(name="serve, until it has answered"), Sample(name=IMPORT)
    argv = [sys.executable, "-c", "import starlette.applications, uvicorn"]

    def start() -> list[float]:
        with _serving(ground, task) as served:
            _get(served, "/healthz")
            return [(time.perf_counter() - served.began) * 1000]

    alternate(rounds.usual, Turn(start, starts), Turn(lambda: [ground.timed(argv).ms], imports))
    ground.drop(task)
    what = f"serve of {WORKERS:,} workers: first answer"
    return Found(rows=[_row(23, what, starts, "median ms", START_GOAL_MS, imports)])


def measure_memory(ground: Ground, rounds: Rounds) -> Found:
    """Measure the memory of the server while many clients read what many events change."""
    task, memory = running_task(ground), Sample(name=_CROWD, unit="KiB")
    for _ in range(max(1, rounds.usual // 5)):
        with _serving(ground, task) as served:
            with _crowd(served, task):
                time.sleep(_MEASURED_S)
                _get(served, f"/api/v1/tasks/{task.id}")
            memory.values.append(served.largest_kib())
    ground.drop(task)
    what = f"largest resident size of serve of {WORKERS:,} workers"
    return Found(rows=[_row(24, what, memory, "median KiB", MEMORY_GOAL_KIB)])


def measure_cost(ground: Ground, rounds: Rounds) -> Found:
    """Measure the processor time of the server while workers only run, and under load."""
    task = running_task(ground)
    idle, busy = Sample(name="1 client, nothing happens", unit="%"), Sample(name=_CROWD, unit="%")
    with _serving(ground, task) as served, contextlib.closing(Stream(served)) as stream:
        stream.read_for(1)
        for _ in range(max(1, rounds.usual // 5)):
            idle.values.append(processor_percent(served, lambda: stream.read_for(_MEASURED_S)))
            with _crowd(served, task):
                stream.read_for(1)
                busy.values.append(processor_percent(served, lambda: stream.read_for(_MEASURED_S)))
            stream.read_for(1)
    ground.drop(task)
    return Found(
        rows=[
            _row(25, f"processor time of serve while {RUNNING} workers run", idle, "percent"),
            _row(25, f"the same with {_CROWD}", busy, "percent"),
        ]
    )


def _row(
    figure: int, what: str, sample: Sample, kind: str, goal: float | None = None, neighbour: Sample | None = None
) -> Row:
    return Row(
        figure=figure, what=what, subject=sample, neighbour=neighbour, result=sample.median, kind=kind, goal=goal
    )


@contextlib.contextmanager
def _serving(ground: Ground, task: TaskDir) -> Iterator[Served]:
    served = Served(ground, task)
    try:
        yield served
    finally:
        served.close()


# -- events ------------------------------------------------------------------------------------------------------------


def _failed_worker(task: TaskDir) -> tuple[str, list[ev.Event]]:
    """Return the name and the events of a worker that fails at once."""
    name = f"seen-{os.urandom(6).hex()}"
    payloads: tuple[tuple[str, dict[str, Any]], ...] = (
        (ev.QUEUED, {"command": "true"}), (ev.STARTED, {"pid": 1}), (ev.FAILED, {"reason": "signal"}),
    )  # fmt: skip
    return name, [ev.make_event(now_iso(), kind, task.id, "bench", payload, name) for kind, payload in payloads]


def _arrival(stream: Stream, task: TaskDir) -> float:
    """Append the events of a worker that fails at once; return how long they and its row took to come, in ms."""
    name, events = _failed_worker(task)
    began = time.perf_counter()
    eventlog.append(task.events, events)
    last = f'"type":"{ev.FAILED}","taskId":"{task.id}","agentInstance":"{name}"'.encode()
    row = f'"{task.id}/{name}":{{'.encode()
    ms = (stream.read_until(last, row, limit_s=10) - began) * 1000
    stream.read_for(_QUIET_S)
    return ms


@contextlib.contextmanager
def _crowd(served: Served, task: TaskDir) -> Iterator[None]:
    """Have many clients read, and many events happen, within the block; each client must have got each event."""
    argv = [sys.executable, "-m", "bench.listeners", str(served.port), served.token, str(CLIENTS - 1)]
    over, appended = threading.Event(), [0]
    before = _events_in(task)
    with subprocess.Popen(argv, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as listeners:
        assert listeners.stdin is not None
        assert listeners.stdout is not None
        if not listeners.stdout.readline():
            raise BenchError("the clients could not connect")
        before = _events_in(task)
        thread = threading.Thread(target=_make_events, args=(task, over, appended))
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            listeners.stdin.close()
            out = listeners.stdout.read()
    had = json.loads(out or "[]")
    if set(had) != {_events_in(task) - before} or len(had) != CLIENTS - 1:
        raise BenchError(f"of {_events_in(task) - before} events the clients had {sorted(set(had))}")


def _events_in(task: TaskDir) -> int:
    with open(task.events, "rb") as file:
        return sum(1 for _ in file)


def _make_events(task: TaskDir, over: threading.Event, appended: list[int]) -> None:
    """Append events of running workers, each of which changes a row."""
    began = time.perf_counter()
    while not over.is_set():
        number = appended[0]
        kind = ev.STALLED if number // RUNNING % 2 else ev.UNSTALLED
        event = ev.make_event(now_iso(), kind, task.id, "bench", {}, f"busy-{number % RUNNING}")
        eventlog.append(task.events, [event], durable=False)
        appended[0] += 1
        over.wait(max(0.0, (number + 1) / EVENTS_A_SECOND - (time.perf_counter() - began)))


# -- requests ----------------------------------------------------------------------------------------------------------


def _get(served: Served, path: str, **headers: str) -> tuple[float, int, bytes, str | None]:
    """Ask for something; return how long it took, in ms, and the answer."""
    began = time.perf_counter()
    status, body, tag = served.get(path, **headers)
    ms = (time.perf_counter() - began) * 1000
    if status not in {200, 304}:
        raise BenchError(f"GET {path}: {status} {body[:200]!r}")
    return ms, status, body, tag


def _get_fresh(served: Served, task: TaskDir) -> float:
    """Return how long a request took whose answer has what was appended before."""
    name, events = _failed_worker(task)
    eventlog.append(task.events, events)
    ms, _, body, _ = _get(served, f"/api/v1/tasks/{task.id}")
    if f'"agentInstance":"{name}"'.encode() not in body:
        raise BenchError(f"the answer does not have {name}")
    return ms


def _get_same(served: Served, task: TaskDir) -> float:
    """Return how long a request took whose answer the client has already."""
    path = f"/api/v1/tasks/{task.id}"
    tag = _get(served, path)[3]
    ms, status, _, _ = _get(served, path, If_None_Match=tag or "")
    if status != 304:
        raise BenchError(f"the answer has changed without an event: {status}")
    return ms
