"""A task that has been through something, made once and copied for each test that looks at its files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.steps import Task, new_task, spawn
from tests.support import run, worker

#: The workers of the task, one of each end.
ENDED = {"a1": "completed", "a2": "failed", "a3": "cancelled"}


def ended_task(factory: pytest.TempPathFactory) -> Task:
    """Return a task of this test's own whose workers have ended as `ENDED` says."""
    kept = factory.getbasetemp() / "ended-task"
    root = Path(os.environ["AGENTCTL_ROOT"])
    if kept.exists():
        shutil.copytree(kept, root)
        return Task(root / "tasks" / "t1")
    task = new_task()
    spawn(worker("exits", 0), "--wait", name="a1")
    spawn(worker("exits", 3), "--wait", name="a2", check=False)
    spawn(worker("waits_for_file", root / "never"), name="a3")
    run("cancel", "a3")
    run("wait-all", check=False)
    # A FIFO cannot be copied, and an ended worker needs none.
    shutil.copytree(root, kept, ignore=shutil.ignore_patterns("control"))
    return task
