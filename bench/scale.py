"""What grows with the number of workers on nodes: `python -m bench.scale`, the measurements behind docs/scale.md.

No cluster is needed: files of the sizes that 1,000, 10,000 and 100,000 workers make are written and read, one worker is
run by the reference runner, and many are queued before a cluster that only pretends.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from agentctl.adapters.taskdir import LaunchDir, TaskDir
from agentctl.adapters.treedir import tree_of
from agentctl.domain.worker.sightings import EngineState, Sighting
from agentctl.errors import ExitCode
from agentctl.runners.slurm import seen_in
from agentctl.supervision.queue.tickets import make_ticket, read_queue, show_ticket, write_ticket
from agentctl.supervision.worker.engine_answers import answer_in, as_lines
from agentctl.supervision.worker.environment import NO_ENVIRONMENT
from bench import clusters
from bench.ground import Ground, wait_until
from bench.measuring import BenchError, number

SIZES = (1_000, 10_000, 100_000)
#: As the files and commands that Slurm itself prints for each job.
_LINE = "agentctl-{id}|{number}|RUNNING|node{number}|None\n"
_CAP = 10
_LIMIT_S = 1800.0


def main() -> int:
    """Measure the chosen parts, and print a line for each figure."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--only", action="append", choices=PARTS, help="measure only this part; repeatable")
    parser.add_argument("--queued", type=int, default=10_000, help="how many workers the part `queued` queues")
    options = parser.parse_args()
    ground = Ground()
    try:
        for name in options.only or PARTS:
            print(f"{name}:", flush=True)
            for line in PARTS[name](ground, options.queued):
                print(f"  {line}", flush=True)
    finally:
        left = ground.close()
    print(*(f"error: left running, now killed: {process}" for process in left), sep="\n", file=sys.stderr)
    return 1 if left else 0


# -- what the engine says ----------------------------------------------------------------------------------------


def _engine(_ground: Ground, _queued: int) -> Iterator[str]:
    """Yield how long it takes to read squeue's output, and to find one launch in the answer that all share."""
    for size in SIZES:
        ids = [f"{number:016x}" for number in range(size)]
        text = "".join(_LINE.format(id=name, number=at) for at, name in enumerate(ids))
        parsed_ms = _median_ms(lambda text=text: seen_in(text))  # type: ignore[misc]
        seen = Sighting(EngineState.RUNNING, "RUNNING", "node4711", "", "4711")
        data = as_lines(1.0, "", dict.fromkeys(ids, seen))
        found_ms = _median_ms(lambda data=data, ids=ids: answer_in(data, ids[len(ids) // 2]))  # type: ignore[misc]
        yield (
            f"{size:,} launches: squeue prints {_size(len(text))}, read in {number(parsed_ms)} ms by one process;"
            f" the shared answer has {_size(len(data))}, one launch in it is found in {number(found_ms)} ms"
        )


# -- what a worker leaves in the file system ---------------------------------------------------------------------


def _files(ground: Ground, _queued: int) -> Iterator[str]:
    """Yield the files of one worker, while it runs on a node and after its end, and what is flushed for it."""
    with clusters.loopback(ground):
        task = ground.task(cap=2)
        spawn = ["spawn", "--runner", "loopback", "--name", "one", "--", "sleep", "600"]
        ground.agentctl(task, *spawn)
        worker = task.worker("one")
        launch = _launch(task, "one")
        wait_until(lambda: launch.claim.exists() and worker.stdout.exists())
        wait_until(launch.worker_on_node(worker).stdout.exists)
        running = _inodes(worker.path)
        ground.agentctl(task, "cancel", "one", "--grace-seconds", "0.1")
        ground.settle(task)
        ended = _inodes(worker.path)
        yield (
            f"one worker: {running[0]} files and folders ({_size(running[1])} on disk) while it runs on a node,"
            f" {ended[0]} ({_size(ended[1])}) after its end"
        )
        ground.drop(task)
    yield from _flushes(ground)


def _flushes(ground: Ground) -> Iterator[str]:
    if shutil.which("strace") is None:
        yield "flushes: strace: not found"
        return
    for runner in ("local", "loopback"):
        with clusters.loopback(ground):
            task = ground.task(cap=2)
            log = ground.folder() / "log"
            argv = ["strace", "-f", "-qq", "-e", "trace=fsync,fdatasync,syncfs", "-o", str(log)]
            command = ground.command(task, "spawn", "--runner", runner, "--name", "one", "--", "true")
            ground.timed([*argv, *command])
            wait_until(lambda task=task: task.worker("one").has_ended)  # type: ignore[misc]
            ground.settle(task)
            calls = [line for line in log.read_text(encoding="utf-8").splitlines() if "sync" in line]
            yield f"`true` by the runner {runner}, from spawn to end: {len(calls)} flushes of files and folders"
            ground.drop(task)


def _launch(task: TaskDir, instance: str) -> LaunchDir:
    file = task.worker(instance).launch
    wait_until(file.exists)
    return LaunchDir(str(json.loads(file.read_bytes())["path"]))


def _inodes(folder: str) -> tuple[int, int]:
    """Return how many files and folders there are below a folder, with itself, and how many bytes they take."""
    found = [Path(folder), *Path(folder).rglob("*")]
    return len(found), sum(path.lstat().st_blocks * 512 for path in found)


# -- the queue ---------------------------------------------------------------------------------------------------


def _tickets(ground: Ground, _queued: int) -> Iterator[str]:
    """Yield how long it takes to read the queue: each start and each end of a worker does it once."""
    for size in SIZES:
        task = ground.task(cap=1)
        tree = tree_of(task)
        for at in range(size):
            ticket = make_ticket(task.id, f"sleep-{at}", 0, at, NO_ENVIRONMENT, waits=False)
            write_ticket(tree, ticket, (), after_any=False)
            show_ticket(tree, ticket)
        folder = os.stat(tree.queue).st_size
        read_ms = _median_ms(lambda tree=tree: read_queue(tree))  # type: ignore[misc]
        yield f"{size:,} waiting workers: the queue is read in {number(read_ms)} ms; its folder has {_size(folder)}"
        shutil.rmtree(tree.queue)
        os.mkdir(tree.queue, 0o700)
        ground.drop(task)


def _queued(ground: Ground, count: int) -> Iterator[str]:
    """Yield what commands take with many queued workers, of which a few run on the nodes of a pretended cluster."""
    with clusters.pretended(ground) as cluster:
        task = ground.task(cap=_CAP)
        batch = ground.folder() / "batch.jsonl"
        batch.write_text('{"argv": ["sleep", "600"], "runner": "slurm"}\n' * count, encoding="utf-8")
        ran = ground.timed([*ground.command(task, "spawn", "--batch", str(batch)), "--queue"], limit_s=_LIMIT_S)
        yield f"{count:,} workers at a cap of {_CAP}: spawn --batch took {number(ran.ms / 1000)} s"
        wait_until(lambda: len(cluster.workers) == _CAP, limit_s=_LIMIT_S)
        for verb in (["list", "--json"], ["list"], ["wait-any", "--timeout-seconds", "0"]):
            yield f"{' '.join(verb)}: {number(_command_ms(ground, task, verb))} ms"
        yield f"the log of the task: {_size(os.stat(task.events).st_size)}; its folder of workers: " + _size(
            os.stat(task.worker("sleep-1").path.parent).st_size
        )
        handed = []
        for _ in range(_CAP):
            known = len(cluster.workers)
            began = cluster.workers[-1].end()
            wait_until(lambda known=known: len(cluster.workers) > known, limit_s=_LIMIT_S)  # type: ignore[misc]
            handed.append((time.monotonic_ns() - began) / 1e9)
        yield f"from a worker's end on its node to the claim of the next one: {number(statistics.median(handed))} s"
        began_s = time.monotonic()
        ground.timed(ground.command(task, "cancel", "--all", "--grace-seconds", "0.1"), limit_s=_LIMIT_S)
        yield f"cancel --all: {number(time.monotonic() - began_s)} s"
        for worker in cluster.workers:
            worker.end()
        ground.drop(task)


def _command_ms(ground: Ground, task: TaskDir, verb: list[str]) -> float:
    argv = ground.command(task, *verb)
    values = []
    for _ in range(5):
        began = time.perf_counter()
        done = subprocess.run(argv, cwd=ground.disk, env=ground.environ, capture_output=True, check=False)
        values.append((time.perf_counter() - began) * 1000)
        if done.returncode not in (ExitCode.DONE, ExitCode.TIMED_OUT):
            raise BenchError(f"{verb}: {done.stderr.decode()[-300:]}")
    return statistics.median(values)


def _median_ms(run: Callable[[], object], rounds: int = 5) -> float:
    values = []
    for _ in range(rounds):
        began = time.perf_counter()
        run()
        values.append((time.perf_counter() - began) * 1000)
    return statistics.median(values)


def _size(count: int) -> str:
    return f"{number(count / 1e6)} MB" if count >= 1e6 else f"{number(count / 1e3)} kB"


PARTS: dict[str, Callable[[Ground, int], Iterator[str]]] = {
    "engine": _engine, "files": _files, "tickets": _tickets, "queued": _queued,
}  # fmt: skip

if __name__ == "__main__":
    sys.exit(main())
