"""Figures 13 and 14: the tools over MCP, called by a client that does nothing but read and write lines."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentctl.adapters.files import read_known
from agentctl.adapters.taskdir import TaskDir
from bench.ground import Ground
from bench.measuring import BenchError, Found, Rounds, Row, Sample, Turn, alternate
from bench.waiting import worker_at_a_gate

WAKE_GOAL_MS, OVERHEAD_GOAL_MS, COMMAND_GOAL_MS = 15, 40, 150
_SLEEP = "sleep 0.2"
_HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


class Client:
    """A client of one server, over the server's standard input and output."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._number = 0
        self.ask("initialize", _HELLO)
        self._say({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, method: str, params: dict[str, Any]) -> None:
        """Send a request."""
        self._number += 1
        self._say({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})

    def receive(self) -> Any:
        """Return the answer to the last request."""
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            message = json.loads(line)
            if message.get("id") == self._number:
                return message["result"]
        raise BenchError("the server has ended")

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        """Send a request, and return its answer."""
        self.send(method, params)
        return self.receive()

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool, and return its structured result."""
        answer: dict[str, Any] = self.ask("tools/call", {"name": tool, "arguments": arguments})["structuredContent"]
        return answer

    def _say(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()


@contextlib.contextmanager
def _client(ground: Ground, task: TaskDir) -> Iterator[Client]:
    command = ground.command(task, "mcp", "--tools", "all")
    with subprocess.Popen(command, env=ground.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield Client(process)
        finally:
            process.kill()


def measure_wake(ground: Ground, rounds: Rounds) -> Found:
    """Measure the time from a worker's exit to the answer of a waiting call of `wait`."""
    task = ground.task(cap=5)
    wake = Sample(name="exit to the answer of wait")
    with _client(ground, task) as client:
        alternate(rounds.waits, Turn(lambda: [_wake(ground, task, client)], wake))
    ground.drop(task)
    row = Row(
        figure=13, what="exit of a worker to the answer of `wait` over MCP", subject=wake, neighbour=None,
        result=wake.median, kind="median ms", goal=WAKE_GOAL_MS,
    )  # fmt: skip
    return Found(rows=[row])


def _wake(ground: Ground, task: TaskDir, client: Client) -> float:
    argv, gate, told = worker_at_a_gate(ground)
    instance = ground.agentctl(task, "spawn", "--", *argv).out.split()[0]
    client.send("tools/call", {"name": "wait", "arguments": {"ids": [instance]}})
    # By then the call sleeps. If it does not sleep yet, it sees the exit late, which makes the figure only worse.
    time.sleep(0.1)
    opened = os.open(gate, os.O_WRONLY)
    answer = client.receive()["structuredContent"]
    now = time.monotonic_ns()
    os.close(opened)
    if answer["status"] != {instance: "completed"}:
        raise BenchError(f"wait said {answer} instead of {instance}")
    return (now - int(told.read_bytes())) / 1e6


def measure_subtask(ground: Ground, rounds: Rounds) -> Found:
    """Measure by how much a blocking sub-task takes longer than its worker's process."""
    task = ground.task(cap=5)
    _define(ground, task)
    over = Sample(name="create_subtask, less its worker's life")
    by_command = Sample(name="agentctl subtask, less its worker's life")
    with _client(ground, task) as client:
        alternate(rounds.usual, Turn(lambda: [_subtask(task, client)], over))
    alternate(rounds.usual, Turn(lambda: [_subtask_by_command(ground, task)], by_command))
    ground.drop(task)
    return Found(
        rows=[
            Row(
                figure=14, what=f"a blocking sub-task {how}, over its worker's own time", subject=sample,
                neighbour=None, result=sample.median, kind="median ms", goal=goal,
            )
            for how, sample, goal in (
                ("over MCP", over, OVERHEAD_GOAL_MS),
                ("by command line", by_command, COMMAND_GOAL_MS),
            )
        ]
    )  # fmt: skip


def _define(ground: Ground, task: TaskDir) -> None:
    file = Path(task.root.path, "agents", "sleeps.md")
    file.parent.mkdir(exist_ok=True)
    head = json.dumps({"name": "sleeps", "description": "Sleeps.", "argv": ["/bin/sh", "-c", _SLEEP]})
    file.write_text(f"---\n{head}\n---\n", encoding="utf-8")
    ground.timed([*ground.program, "trust", str(file)], cwd=file.parent.parent.parent)


def _subtask(task: TaskDir, client: Client) -> float:
    began = time.perf_counter()
    answer = client.call("create_subtask_sleeps", title="Sleep")
    ms = (time.perf_counter() - began) * 1000
    if answer.get("subTaskStatus") != "Success":
        raise BenchError(f"the sub-task answered {answer}")
    return ms - _life_ms(task, answer["taskId"])


def _subtask_by_command(ground: Ground, task: TaskDir) -> float:
    ran = ground.agentctl(task, "subtask", "sleeps", "Sleep", "--json")
    return ran.ms - _life_ms(task, json.loads(ran.out)["taskId"])


def _life_ms(task: TaskDir, subtask: str) -> float:
    child = task.sibling(subtask)
    decision = read_known(child.worker(child.instances()[0]).exit)
    return float(decision["durationSeconds"]) * 1000
