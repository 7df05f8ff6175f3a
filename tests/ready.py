"""Provides a task with ended workers, made once and copied for each test that looks at its files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.steps import Task, new_task, sign, spawn
from tests.support import is_alive, run, wait_for_json, wait_until, worker

#: The workers of the task, one for each kind of end.
ENDED = {"a1": "completed", "a2": "failed", "a3": "cancelled"}


def made_once(factory: pytest.TempPathFactory, make: Callable[[], object]) -> Task:
    """Return a task `t1` for this test, a copy of what `make` made the first time; all its workers must have ended."""
    kept = factory.getbasetemp() / f"{make.__module__}.{make.__qualname__}"
    root = Path(os.environ["AGENTCTL_ROOT"])
    task = Task(root / "tasks" / "t1")
    if kept.exists():
        shutil.copytree(kept, root)
        sign(task.path)
        return task
    make()
    wait_until(lambda: not any(map(is_alive, _shims(task))), what="the shims to leave: until then they write")
    run("list")  # Repairs the roster, in case its last writer had read the log before another one.
    # A FIFO cannot be copied, and an ended worker needs none.
    shutil.copytree(root, kept, ignore=shutil.ignore_patterns("control", "*.tmp"))
    return task


def _shims(task: Task) -> list[int]:
    return [int(wait_for_json(file)["pid"]) for file in task.path.glob("agents/*/shim.json")]


def ended_task(factory: pytest.TempPathFactory) -> Task:
    """Return a task for this test whose workers have ended as `ENDED` says."""
    return made_once(factory, _end_each_way)


def _end_each_way() -> None:
    root = new_task().path.parent.parent
    spawn(worker("exits", 0), "--wait", name="a1")
    spawn(worker("exits", 3), "--wait", name="a2", check=False)
    spawn(worker("waits_for_file", root / "never"), name="a3")
    run("cancel", "a3")
    run("wait-all", check=False)
