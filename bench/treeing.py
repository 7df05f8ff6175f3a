"""Figure 10: `tree` of a large activity, compared with `tree` of a small one."""

from __future__ import annotations

import json
import os
import subprocess
import time
from itertools import count

from agentctl.adapters.clock import now_iso
from agentctl.adapters.taskdir import TaskDir
from agentctl.domain.activity.row import Phase, Row, RowType, encode_row
from bench.ground import Ground
from bench.measuring import BenchError, Found, Rounds, Sample, Turn, alternate
from bench.measuring import Row as Figure

SIZE = 100_000_000
GOAL_MS, GOAL_KIB = 500, 102_400
_AGENTS = 40
#: The results of calls are up to this many characters long, evenly distributed.
_LONGEST_RESULT = 2400
_WORDS = "def handle(self, request):\n    return self.answers[request.id]\n"


def measure_tree(ground: Ground, rounds: Rounds) -> Found:
    """Measure time and memory of `tree` for an activity of 100 MB and for one of 10 kB."""
    task = ground.task(cap=2)
    written = {}
    for instance, size in (("large", SIZE), ("small", 10_000)):
        ground.agentctl(task, "spawn", "--wait", "--name", instance, "--", "true")
        written[instance] = fill(task, instance, size)
    _check(ground, task, written)
    times = {name: Sample(name=f"tree, {name} activity") for name in written}
    memory = {name: Sample(name=times[name].name, unit="KiB") for name in written}
    turns = [Turn(lambda name=name: _run(ground, task, name), times[name], memory[name]) for name in written]  # type: ignore[misc]
    alternate(rounds.usual, *turns)
    ground.drop(task)
    over = times["large"].median - times["small"].median
    what = f"tree of an activity of {SIZE // 1_000_000} MB"
    return Found(
        rows=[
            Figure(
                figure=10, what=f"{what}, over start-up", subject=times["large"], neighbour=times["small"],
                result=over, kind="median ms", goal=GOAL_MS,
            ),
            Figure(
                figure=10, what=f"largest resident size of {what}", subject=memory["large"], neighbour=memory["small"],
                result=memory["large"].median, kind="median KiB", goal=GOAL_KIB,
            ),
        ]
    )  # fmt: skip


def fill(task: TaskDir, instance: str, size: int) -> dict[str, int]:
    """Write an activity of calls by the worker and its sub-agents; return how many calls and input tokens it has."""
    calls = tokens = 0
    agents = [f"agent-{number}" for number in range(_AGENTS)]
    with open(task.worker(instance).activity, "wb") as file:
        starts = [Row(RowType.AGENT, id_, Phase.START, agent_type="explore") for id_ in agents]
        file.writelines(encode_row(row, now_iso()) for row in starts)
        for number in count():
            if file.tell() > size:
                break
            at, parent = now_iso(), None if number % 3 else agents[number % _AGENTS]
            file.writelines(encode_row(row, at) for row in _rows_of_call(number, parent))
            calls, tokens = calls + 1, tokens + number
    return {"calls": calls, "input": tokens}


def _rows_of_call(number: int, parent: str | None) -> list[Row]:
    id_, result = f"toolu_call_{number:016x}", _WORDS * (number * 7919 % _LONGEST_RESULT // len(_WORDS))
    return [
        Row(
            RowType.TOOL, id_, Phase.START, parent, "running", name="Bash", detail={"command": f"sed -n {number}p x.py"}
        ),
        Row(RowType.TOOL, id_, Phase.END, parent, "completed", name="Bash", text=result),
        Row(RowType.USAGE, f"msg_{number:016x}", parent=parent, detail={"input": number, "output": 20, "cached": 5}),
    ]


def _check(ground: Ground, task: TaskDir, written: dict[str, dict[str, int]]) -> None:
    """Raise `BenchError` if `tree` does not report all calls and tokens of the file."""
    for worker in json.loads(ground.agentctl(task, "tree", "--json").out)["workers"]:
        instance, shown = worker["agentInstance"], {"calls": worker["calls"], "input": worker["tokens"]["input"]}
        if shown != written[instance] or worker["badLines"]:
            raise BenchError(f"tree reports {shown} for {instance}, not {written[instance]}")


def _run(ground: Ground, task: TaskDir, instance: str) -> list[float]:
    """Return how long `tree INSTANCE` took (ms), and its largest resident size (KiB)."""
    began = time.perf_counter()
    argv = ground.command(task, "tree", instance)
    process = subprocess.Popen(argv, env=ground.environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    ms = (time.perf_counter() - began) * 1000
    process.returncode = os.waitstatus_to_exitcode(status)
    if status:
        raise BenchError(f"{' '.join(argv)}: exit code {process.returncode}")
    return [ms, used.ru_maxrss]
