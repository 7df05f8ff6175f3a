"""Makes tasks with thousands of ended workers: some were really run, the others are copies of their files."""

from __future__ import annotations

import json
import os
import stat
from collections import Counter
from collections.abc import Iterable
from typing import Any

from agentctl.adapters import eventlog
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.adapters.taskyaml import roster
from agentctl.domain.events import BadLine, Event
from agentctl.domain.states import Status
from bench.ground import Ground
from bench.measuring import BenchError

#: How many workers of a filled task are really run.
REAL = 10
FILLED = (
    f"3, 5: in a filled task {REAL} workers really ran; the folders, events and roster rows of the others are copies of"
    " theirs, compared with them and checked with list and doctor"
)


def name(number: int) -> str:
    """Return the instance that the worker of this number gets from `spawn -- true`."""
    return f"true-{number}"


def filled_task(ground: Ground, workers: int, cap: int = 5) -> TaskDir:
    """Return a task in which `workers` runs of `true` have ended, according to its log, roster and folders."""
    task = ground.task(cap)
    for _ in range(min(REAL, workers)):
        ground.agentctl(task, "spawn", "--queue", "--", "true")
    ground.agentctl(task, "wait-all")
    ground.settle(task)
    if workers > REAL:
        _fill(task, range(REAL + 1, workers + 1))
        _check(ground, task, workers)
    return task


def _fill(task: TaskDir, numbers: range) -> None:
    pattern = task.worker(name(REAL))
    files = {entry.name: entry.path for entry in os.scandir(pattern.path)}
    contents = {file: _content(path) for file, path in files.items()}
    for number in numbers:
        _write_folder(task.worker(name(number)), contents, pattern.instance)
    queued, *later = _events_of(task, pattern.instance)
    eventlog.append(task.events, [_renamed(queued, pattern.instance, name(number)) for number in numbers])
    eventlog.append(
        task.events, [_renamed(event, pattern.instance, name(number)) for number in numbers for event in later]
    )
    row = roster.RosterRow("command", Status.COMPLETED)
    if not roster.update(task, {name(number): row for number in numbers}):
        raise BenchError(f"the roster of {task.task_file} could not be filled")


def _content(path: str) -> bytes | None:
    """Return a file's content; None for a FIFO."""
    if stat.S_ISFIFO(os.stat(path).st_mode):
        return None
    with open(path, "rb") as file:
        return file.read()


def _write_folder(worker: WorkerDir, contents: dict[str, bytes | None], pattern: str) -> None:
    worker.path.mkdir()
    old, new = f'"{pattern}"'.encode(), f'"{worker.instance}"'.encode()
    for file, content in contents.items():
        if content is None:
            os.mkfifo(worker.path / file, 0o600)
            continue
        fd = os.open(worker.path / file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(fd, content.replace(old, new))
        os.close(fd)


def _events_of(task: TaskDir, instance: str) -> list[Event]:
    rows = eventlog.LogReader(task.events).read_new()
    return [row[1] for row in rows if not isinstance(row, BadLine) and row[1].get("agentInstance") == instance]


def _renamed(event: Event, old: str, new: str) -> Event:
    renamed: Event = json.loads(json.dumps(event).replace(f'"{old}"', f'"{new}"'))
    return renamed


# -- checks ------------------------------------------------------------------------------------------------------


def _check(ground: Ground, task: TaskDir, workers: int) -> None:
    """Compare a copied worker with one that really ran, and check the task with `list` and `doctor`."""
    real, written = task.worker(name(1)), task.worker(name(workers))
    for what, look in (("files", _shape), ("events", lambda agent: list(map(_keys, _events_of(task, agent.instance))))):
        if look(real) != look(written):
            raise BenchError(f"the {what} of {written.instance} are not those of a real worker: {look(written)}")
    statuses = Counter(row["status"] for row in json.loads(ground.agentctl(task, "list", "--json").out))
    if statuses != {"completed": workers}:
        raise BenchError(f"the filled task has other statuses than it should: {dict(statuses)}")
    found = json.loads(ground.timed([*ground.program, "doctor", "--root", str(task.root.path), "--json"]).out)
    if problems := [row for row in found if row["severity"] in ("warning", "error") and task.path in str(row)]:
        raise BenchError(f"doctor finds damage in the filled task: {problems[:3]}")


def _shape(worker: WorkerDir) -> dict[str, tuple[str, list[Any]]]:
    """Return the modes of a worker's files, and the keys of those that hold JSON."""
    found = {}
    for entry in os.scandir(worker.path):
        keys = list(json.loads(_content(entry.path) or b"{}")) if entry.name.endswith(".json") else []
        found[entry.name] = (stat.filemode(entry.stat().st_mode), keys)
    return found


def _keys(event: Event) -> Iterable[object]:
    return [event["type"], *event, *event["payload"]]
