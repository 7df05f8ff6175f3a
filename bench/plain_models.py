"""Figures 30 and 31: an agent from a model alone: its private memory, and the time to its first request."""

from __future__ import annotations

import time
from pathlib import Path

import psutil

from agentctl.adapters.files import read_known
from agentctl.adapters.taskdir import TaskDir
from bench.answering import of_bare
from bench.ground import Ground, wait_until
from bench.guarding import BARE, private_dirty
from bench.measuring import Found, Rounds, Row, Sample, Turn, alternate
from tests.agents.standin import StandIn
from tests.agents.surroundings import environ_of, write_providers

MEMORY_GOAL_KIB, TIME_GOAL_MS = 40 * 1024, 500
_MODEL = "standin/stand-in"
#: `explore` may only read; `general` has all tools, agentctl's own among them.
_AGENTS = ("explore", "general")


class PlainModel:
    """A stand-in for a model, a task, and agents that ask it."""

    def __init__(self, ground: Ground, standin: StandIn) -> None:
        self.ground, self.standin, self.task = ground, standin, ground.task(cap=5)
        config = Path(ground.environ["XDG_CONFIG_HOME"]) / "agentctl"
        write_providers(config, standin.url, _MODEL)
        told = environ_of(ground.folder(), standin.url)
        self.environ = {name: value for name, value in told.items() if value is not None}
        self._agents = 0

    def spawn(self, agent: str, scenario: str) -> str:
        """Start an agent; return its name."""
        self._agents += 1
        chosen = ("--agent", agent, "--driver", "llm", "--name", f"a{self._agents}")
        self.ground.timed(self.ground.command(self.task, "spawn", *chosen, f"SCENARIO:{scenario}"), env=self.environ)
        return f"a{self._agents}"

    def first_request(self, agent: str) -> float:
        """Return the milliseconds from the command to the first request; the agent has ended then."""
        known, began_ns = len(self.standin.arrivals_ns), time.monotonic_ns()
        instance = self.spawn(agent, "text")
        wait_until(lambda: len(self.standin.arrivals_ns) > known)
        self.ground.agentctl(self.task, "wait", instance)
        self.ground.settle(self.task)
        return (self.standin.arrivals_ns[known] - began_ns) / 1e6

    def memory(self) -> float:
        """Return the KiB of the processes of an agent that waits for its model: those of host and program."""
        known = len(self.standin.arrivals_ns)
        instance = self.spawn("general", "mute")
        wait_until(lambda: len(self.standin.arrivals_ns) > known)
        pids = [process.pid for process in _processes(self.task, instance)]
        found = sum(private_dirty(pid) for pid in pids)
        self.ground.agentctl(self.task, "cancel", instance)
        self.ground.settle(self.task)
        return found


def _processes(task: TaskDir, instance: str) -> list[psutil.Process]:
    host = psutil.Process(int(read_known(task.worker(instance).process)["pid"]))
    return [host, *host.children(recursive=True)]


def measure_memory(ground: Ground, rounds: Rounds) -> Found:
    """Measure host and program of an agent from a model alone and, to compare, bare interpreters."""
    if not Path("/proc/self/smaps_rollup").exists():
        return Found(missing=["30: /proc/PID/smaps_rollup: not found"])
    subject, bare = Sample(name="host and program", unit="KiB"), Sample(name=" ".join(BARE[1:3]), unit="KiB")
    with StandIn() as standin:
        plain = PlainModel(ground, standin)
        alternate(rounds.usual, Turn(lambda: [plain.memory()], subject), Turn(lambda: [of_bare()], bare))
        ground.drop(plain.task)
    row = Row(
        figure=30, what="Private_Dirty of an agent from a model alone", subject=subject, neighbour=bare,
        result=subject.median, kind="median KiB", goal=MEMORY_GOAL_KIB,
    )  # fmt: skip
    return Found(rows=[row])


def measure_start(ground: Ground, rounds: Rounds) -> Found:
    """Measure the time from `spawn` to the first request and, to compare, that of a command from `spawn` to its end."""
    found = Found()
    with StandIn() as standin:
        plain = PlainModel(ground, standin)
        samples = [Sample(name=f"spawn --agent {agent}") for agent in _AGENTS]
        command = Sample(name="spawn -- true, to its end")
        turns = [
            Turn(lambda agent=agent: [plain.first_request(agent)], sample)  # type: ignore[misc]
            for agent, sample in zip(_AGENTS, samples, strict=True)
        ]
        alternate(rounds.usual, *turns, Turn(lambda: [_of_command(ground, plain.task)], command))
        ground.drop(plain.task)
    for agent, sample in zip(_AGENTS, samples, strict=True):
        found.rows.append(
            Row(
                figure=31, what=f"a plain model's {agent}, until it is asked", subject=sample, neighbour=command,
                result=sample.median, kind="median ms", goal=TIME_GOAL_MS,
            )
        )  # fmt: skip
    return found


def _of_command(ground: Ground, task: TaskDir) -> float:
    began_ns = time.monotonic_ns()
    instance = ground.agentctl(task, "spawn", "--", "true").out.split()[0]
    ground.agentctl(task, "wait", instance)
    ground.settle(task)
    return (time.monotonic_ns() - began_ns) / 1e6
