"""Figures 26 to 28: workers on the nodes of a cluster, as the head sees them.

What a node does is not counted in figure 28: its cluster only pretends, since no machine has 1,000 nodes.
"""

from __future__ import annotations

import contextlib
import os
import random
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from agentctl.adapters import processes
from agentctl.adapters.files import read_known
from agentctl.adapters.taskdir import LaunchDir, TaskDir
from agentctl.worker_programs.on_node.lookout import PAUSE_S
from bench import clusters
from bench.ground import Ground, wait_until
from bench.guarding import private_dirty
from bench.measuring import BenchError, Found, Rounds, Row, Sample, Turn, alternate, ratio
from bench.pretending import PretendedCluster
from bench.waiting import worker_at_a_gate

START_GOAL, WAKE_GOAL_MS, CPU_GOAL_PERCENT, POLLS_GOAL = 1.15, 1500, 5, 4
#: What the figure is about; and how many workers are really followed for it, usually and in a quick run.
MANY, SAMPLE, FEW = 1000, 250, 50
#: A worker that has done nothing for this long is looked at as seldom as any.
_CALM_S = 11.0
#: For how many seconds the head is watched: a whole number of the ticks of a shim, and of the engine's polls.
_WATCHED_S = 120.0
_POLLED_S = 65.0
#: What a worker takes here in memory, with pages that count for no process.
_MIB_EACH = 16
_PATIENCE_S = 900.0


def measure_start(ground: Ground, rounds: Rounds) -> Found:
    """Measure figure 26: from the command to the first instruction on a node, beside sbatch with a bare script."""
    if (reason := clusters.why_no_slurm()) is not None:
        return Found(missing=[f"26: a real Slurm: {reason}"])
    found = Found(
        notes=[
            "26: a worker, and a script of sbatch, write the time as the first thing that they do",
            "26: with --export=NIL, which keeps a person's environment out of its state, Slurm loads that of a login",
        ]
    )
    for delay_s, what, goal in (
        (clusters.DEFAULT_DELAY_S, "with Slurm's own scheduler delay of 3 s", START_GOAL),
        (0, "without scheduler delay", None),
    ):
        spawned = Sample(name="until the worker runs")
        alike, bare = (
            Sample(name=f"{command}, until its script runs") for command in ("sbatch --export=NIL", "sbatch")
        )
        with clusters.slurm(ground, delay_s):
            task, moment = ground.task(cap=5), _Moment(ground)
            try:
                alternate(
                    rounds.usual,
                    moment.choose,
                    Turn(partial(_spawned, ground, task), spawned),
                    moment.come,
                    Turn(partial(_submitted, ground, "--export=NIL"), alike),
                    moment.come,
                    Turn(partial(_submitted, ground), bare),
                )
            finally:
                ground.drop(task)
        found.rows.append(ratio(26, f"spawn --runner slurm, {what}", spawned, alike, goal))
        found.rows.append(ratio(26, f"the same, over sbatch as it is by itself, {what}", spawned, bare, None))
    return found


class _Moment:
    """When in a round the jobs come that are compared: each so long after another job, which is random.

    Slurm looks at its queue from time to time, and after an end. Who comes just after a start would always be met by
    the look after the end of that job, and who comes a quarter of a second later never.
    """

    def __init__(self, ground: Ground) -> None:
        self._ground, self._after_s = ground, 0.0

    def choose(self) -> None:
        """Choose the moment for a round, and let it come."""
        self._after_s = random.uniform(0, clusters.DEFAULT_DELAY_S)
        self.come()

    def come(self) -> None:
        """Have another job start, and let as much time pass as before the others of the round."""
        _submitted(self._ground)
        time.sleep(self._after_s)


def _spawned(ground: Ground, task: TaskDir) -> list[float]:
    told = ground.folder() / "told"
    argv = ["spawn", "--runner", "slurm", "--", "/bin/sh", "-c", _telling(told)]
    began_ns = ground.agentctl(task, *argv).began_ns
    wait_until(lambda: _has_told(told))
    ground.agentctl(task, "wait-all")
    ground.settle(task)
    return [(int(told.read_bytes()) - began_ns) / 1e6]


def _submitted(ground: Ground, *options: str) -> list[float]:
    told = ground.folder() / "told"
    script = told.with_name("script")
    script.write_text(f"#!/bin/sh\n{_telling(told)}\n", encoding="utf-8")
    began_ns = ground.timed(["sbatch", "--parsable", "--output=/dev/null", *options, str(script)]).began_ns
    wait_until(lambda: _has_told(told))
    return [(int(told.read_bytes()) - began_ns) / 1e6]


def _telling(told: Path) -> str:
    return f"date +%s%N > {shlex.quote(str(told))}"


def _has_told(told: Path) -> bool:
    return told.exists() and told.read_bytes().endswith(b"\n")


# -- its end -----------------------------------------------------------------------------------------------------


def measure_wake(ground: Ground, rounds: Rounds) -> Found:
    """Measure figure 27: from the file with which a node tells a worker's end to the end of wait-any."""
    found = Found(
        notes=[
            f"27: workers that have done nothing for {_CALM_S:g} s; one that has just written something is seen sooner"
        ]
    )
    places: dict[str, Callable[[], contextlib.AbstractContextManager[None]]] = {
        "loopback": partial(clusters.loopback, ground)
    }
    if (reason := clusters.why_no_slurm()) is None:
        places["slurm"] = partial(clusters.slurm, ground, 0)
    else:
        found.missing.append(f"27: a real Slurm: {reason}")
    for runner, place in places.items():
        sample = Sample(name=f"ended.json to wait-any's line, {runner}")
        with place():
            sample.values = _wake_ups(ground, runner, rounds.usual)
        found.rows.append(
            Row(
                figure=27, what=f"end of a calm worker on a node to wait-any's line, {runner}", subject=sample,
                neighbour=None, result=sample.median, kind="median ms", goal=WAKE_GOAL_MS,
            )
        )  # fmt: skip
    return found


def _wake_ups(ground: Ground, runner: str, count: int) -> list[float]:
    task = ground.task(cap=count)
    gates: dict[str, Path] = {}
    try:
        for _ in range(count):
            argv, gate, _told = worker_at_a_gate(ground)
            ran = ground.agentctl(task, "spawn", "--runner", runner, "--", *argv)
            gates[ran.out.split()[0]] = gate
        wait_until(lambda: all(_launch_of(task, instance).claim.exists() for instance in gates))
        time.sleep(_CALM_S)
        return [_wake_up_at_any_moment(ground, task, instance, gate) for instance, gate in gates.items()]
    finally:
        ground.drop(task)


def _wake_up_at_any_moment(ground: Ground, task: TaskDir, instance: str, gate: Path) -> float:
    """Measure one end; the wait-any before has ended just after the head had looked, and so would this begin."""
    time.sleep(random.uniform(0, PAUSE_S))
    return _wake_up(ground, task, instance, gate)


def _wake_up(ground: Ground, task: TaskDir, instance: str, gate: Path) -> float:
    with ground.started(ground.command(task, "wait-any"), stdout=subprocess.PIPE) as waiter:
        assert waiter.stdout is not None
        opened = os.open(gate, os.O_WRONLY)
        line = os.read(waiter.stdout.fileno(), 4096)
        now = time.time_ns()
        os.close(opened)
        waiter.wait()
    if not line.startswith(instance.encode()):
        raise BenchError(f"wait-any said {line!r} instead of {instance}")
    return (now - os.stat(_launch_of(task, instance).ended).st_mtime_ns) / 1e6


def _launch_of(task: TaskDir, instance: str) -> LaunchDir:
    return LaunchDir(str(read_known(task.worker(instance).launch).get("path", "/nowhere")))


# -- the head ----------------------------------------------------------------------------------------------------


def measure_head(ground: Ground, rounds: Rounds) -> Found:
    """Measure figure 28: what 1,000 workers on nodes cost the machine that follows them; how often Slurm is asked."""
    if not Path("/proc/self/schedstat").exists():
        return Found(missing=["28: /proc/PID/schedstat: not found"])
    count = _count(rounds)
    cpu, polls = Sample(name="of a processor", unit="%"), Sample(name="calls of squeue", unit="/min")
    memory, waiting = Sample(name="a shim and what stands in", unit="KiB"), Sample(name="of a processor", unit="%")
    with clusters.pretended(ground) as cluster, followed(ground, cluster, count) as (task, head):
        cpu.values = [head.load() * MANY / count]
        memory.values = [sum(map(private_dirty, pair)) for pair in head.pairs]
        polls.values = [_polls_a_minute(ground, task, cluster)]
    with clusters.pretended(ground) as cluster, waited_for(ground, cluster, count) as head:
        waiting.values = [head.load() * MANY / count]
    what = f"the head of {MANY:,} calm workers on nodes"
    rows = (
        ("its processes", cpu, "median %", CPU_GOAL_PERCENT),
        ("its processes, if they wait in Slurm's queue", waiting, "median %", CPU_GOAL_PERCENT),
        ("Private_Dirty for each", memory, "median KiB", None),
        ("polls of Slurm", polls, "median /min", POLLS_GOAL),
    )
    return Found(
        rows=[
            Row(
                figure=28, what=f"{what}: {row}", subject=sample, neighbour=None, result=sample.median, kind=kind,
                goal=goal,
            )
            for row, sample, kind, goal in rows
        ],
        notes=[
            f"28: {count:,} workers of a pretended cluster for {_WATCHED_S:g} s; their time times {MANY / count:g}",
            "28: polls: while one more waits in Slurm's queue; while all are calm, there are fewer",
        ],
    )  # fmt: skip


def _polls_a_minute(ground: Ground, task: TaskDir, cluster: PretendedCluster) -> float:
    """Return how often squeue is called while a worker waits for a node: then somebody looks at each answer."""
    cluster.is_full = True
    ground.agentctl(task, "spawn", "--name", "waits", "--runner", "slurm", "--", "true")
    known = len(cluster.polls)
    wait_until(lambda: len(cluster.polls) > known)
    time.sleep(_POLLED_S)
    asked = cluster.polls[known:]
    ground.agentctl(task, "cancel", "waits")
    return 60e9 * (len(asked) - 1) / (asked[-1] - asked[0])


def _count(rounds: Rounds) -> int:
    """Return how many workers are followed: fewer in a quick run, and where the memory does not suffice."""
    wanted = FEW if rounds.usual < Rounds().usual else SAMPLE
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    return max(1, min(wanted, free // _MIB_EACH))


class Head:
    """The processes of a head: of each worker, its shim and what stands in for it."""

    def __init__(self, pairs: list[tuple[int, int]]) -> None:
        self.pairs = pairs

    def load(self) -> float:
        """Watch it for a while; return how much it has run meanwhile, in percent of one processor."""
        before, began = self._ran_ns(), time.monotonic()
        time.sleep(_WATCHED_S)
        return (self._ran_ns() - before) / 1e7 / (time.monotonic() - began)

    def _ran_ns(self) -> int:
        """Return for how long all of them have run, each thread by the scheduler's clock (proc_pid_schedstat(5))."""
        return sum(
            _ran_ns(thread) for pair in self.pairs for pid in pair for thread in Path(f"/proc/{pid}/task").iterdir()
        )


@contextlib.contextmanager
def followed(ground: Ground, cluster: PretendedCluster, count: int) -> Iterator[tuple[TaskDir, Head]]:
    """Have so many calm workers on the nodes of a cluster that pretends; end them all afterwards."""
    with _spawned_there(ground, count) as task:
        wait_until(lambda: len(cluster.workers) == count, limit_s=_PATIENCE_S)
        time.sleep(2 * _CALM_S)
        try:
            yield task, _head_of(task)
        finally:
            for worker in cluster.workers:
                worker.end()
            wait_until(
                lambda: all(task.worker(worker.instance).has_ended for worker in cluster.workers), limit_s=_PATIENCE_S
            )


@contextlib.contextmanager
def waited_for(ground: Ground, cluster: PretendedCluster, count: int) -> Iterator[Head]:
    """Have so many workers wait in the queue of a cluster that pretends; cancel them all afterwards."""
    cluster.is_full = True
    with _spawned_there(ground, count) as task:
        wait_until(lambda: cluster.waiting == count, limit_s=_PATIENCE_S)
        time.sleep(2 * _CALM_S)
        yield _head_of(task)


@contextlib.contextmanager
def _spawned_there(ground: Ground, count: int) -> Iterator[TaskDir]:
    task = ground.task(cap=count + 1)
    batch = ground.folder() / "batch.jsonl"
    batch.write_text('{"argv": ["sleep", "600"], "runner": "slurm"}\n' * count, encoding="utf-8")
    try:
        ground.timed(ground.command(task, "spawn", "--batch", str(batch)), limit_s=_PATIENCE_S)
        yield task
    finally:
        ground.drop(task)


def _head_of(task: TaskDir) -> Head:
    return Head([_pair_of(task, instance) for instance in sorted(os.listdir(task.agents))])


def _pair_of(task: TaskDir, instance: str) -> tuple[int, int]:
    worker = task.worker(instance)
    shim, stand_in = (processes.identity_from(read_known(path)) for path in (worker.shim, worker.process))
    if shim is None or stand_in is None:
        raise BenchError(f"nobody follows {instance}")
    return shim.pid, stand_in.pid


def _ran_ns(thread: Path) -> int:
    with contextlib.suppress(OSError):
        return int((thread / "schedstat").read_text(encoding="ascii").split()[0])
    return 0
