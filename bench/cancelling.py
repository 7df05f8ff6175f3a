"""Figure 7: the cancel of a tree of 50 stubborn processes, from the end of the last grace period to the event.

Figure 32: the cancel of all that wait in a long queue, beside the spawn that put them there.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from datetime import datetime
from pathlib import Path

from agentctl.adapters import eventlog, processes
from agentctl.adapters.files import read_known
from agentctl.adapters.processes import Identity, Life
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.domain import events as ev
from agentctl.domain.events import BadLine
from bench.ground import REPOSITORY, Ground, wait_until
from bench.measuring import BenchError, Found, Rounds, Row, Sample, Turn, alternate, ratio

SIZE, GRACE_S = 50, 0.3
GOAL_MS = 100
QUEUED, GOAL_OF_QUEUED = (1_000, 10_000), 2
_TREE = REPOSITORY / "tests" / "workers" / "tree.py"


def measure_cancel(ground: Ground, rounds: Rounds) -> Found:
    """Measure the cancel and, to compare, a loop that knows all pids and kills the same tree."""
    task = ground.task(cap=5)
    event = Sample(name="last grace period to agent.cancelled")
    loop = Sample(name="SIGKILL to the same 50, by pid")
    alternate(rounds.usual, Turn(lambda: [_cancel(ground, task)], event), Turn(lambda: [_kill(ground)], loop))
    ground.drop(task)
    row = Row(
        figure=7, what=f"cancel of {SIZE} stubborn processes", subject=event, neighbour=loop,
        result=event.median, kind="median ms", goal=GOAL_MS,
    )  # fmt: skip
    note = f"7: from `at` of cancel.json + 2 x {GRACE_S:g} s to `ts` of agent.cancelled; that includes the request"
    return Found(rows=[row], notes=[note])


def measure_queue(ground: Ground, rounds: Rounds) -> Found:
    """Measure `cancel --all` of long queues; both figures grow as the spawn does if it is linear."""
    found = Found(
        notes=[f"32: medians of {rounds.batches} rounds; one worker runs and is cancelled with those that wait"]
    )
    for many in QUEUED:
        cancelled, spawned = Sample(name="cancel --all"), Sample(name="spawn --batch")
        alternate(rounds.batches, Turn(lambda many=many: _cancel_queued(ground, many), cancelled, spawned))  # type: ignore[misc]
        found += Found(rows=[ratio(32, f"cancel of {many:,} that wait", cancelled, spawned, GOAL_OF_QUEUED)])
    return found


def _cancel_queued(ground: Ground, many: int) -> list[float]:
    task = ground.task(cap=1)
    ground.agentctl(task, "spawn", "--grace-seconds", "0.1", "--", "sleep", "600")
    batch = Path(task.root.path).parent / "batch.jsonl"
    batch.write_text('{"argv": ["true"]}\n' * many, encoding="utf-8")
    spawned = ground.agentctl(task, "spawn", "--batch", str(batch), "--json")
    cancelled = ground.agentctl(task, "cancel", "--all", "--no-wait", "--json")
    told = json.loads(cancelled.out)
    if sum(one["cancelled"] for one in told) < many or any(one["startedMeanwhile"] for one in told):
        raise BenchError("some of the workers that waited were not cancelled, or were started meanwhile")
    ground.settle(task)
    ground.drop(task)
    return [cancelled.ms, spawned.ms]


def _cancel(ground: Ground, task: TaskDir) -> float:
    told = ground.folder() / "pids"
    argv = (sys.executable, str(_TREE), str(SIZE), str(told))
    instance = ground.agentctl(task, "spawn", "--grace-seconds", str(GRACE_S), "--", *argv).out.split()[0]
    members = _members(told)
    ground.agentctl(task, "cancel", instance)
    if any(processes.life_of(member) is Life.ALIVE for member in members):
        raise BenchError("a process of the tree is alive after its cancel")
    ground.settle(task)
    return (_cancelled_at(task, instance) - _asked_at(task.worker(instance)) - 2 * GRACE_S) * 1000


def _kill(ground: Ground) -> float:
    told = ground.folder() / "pids"
    argv = (sys.executable, str(_TREE), str(SIZE), str(told))
    with ground.started(argv):
        members = _members(told)
        began = time.perf_counter()
        for member in members:
            processes.signal_process(member, signal.SIGKILL)
        wait_until(lambda: all(processes.life_of(member) is Life.GONE for member in members))
        return (time.perf_counter() - began) * 1000


def _members(told: Path) -> list[Identity]:
    wait_until(told.exists)
    found = [processes.identify(pid) for pid in json.loads(told.read_text(encoding="utf-8"))]
    members = [member for member in found if member is not None]
    if len(members) != SIZE:
        raise BenchError(f"the tree has {len(members)} processes, not {SIZE}")
    return members


def _asked_at(worker: WorkerDir) -> float:
    return _seconds(str(read_known(worker.cancel)["at"]))


def _cancelled_at(task: TaskDir, instance: str) -> float:
    for row in eventlog.LogReader(task.events).read_new():
        if not isinstance(row, BadLine) and row[1]["type"] == ev.CANCELLED and row[1]["agentInstance"] == instance:
            return _seconds(str(row[1]["ts"]))
    raise BenchError(f"{instance} was not cancelled")


def _seconds(instant: str) -> float:
    return datetime.fromisoformat(instant).timestamp()
