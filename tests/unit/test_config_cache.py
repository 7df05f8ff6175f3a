"""`config.json` of a task: it keeps all that the head says, and is read whichever version has written it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentctl.adapters.taskdir import TaskDir
from agentctl.adapters.taskyaml import roster
from agentctl.adapters.taskyaml.cache import TaskConfig, cached, store
from agentctl.adapters.treedir import tree_of
from agentctl.domain.states import ChildrenAtEnd
from agentctl.domain.tree.limits import Limits
from agentctl.operations.where.task_config import read_config

HEAD = b"""title: A task
parentTaskId: above
rootTaskId: top
parentInstance: w
agent: explore
author: user
createdAt: "2026-11-21T23:06:18.986Z"
config:
  maxDepth: 3
  permissions: deny
  childrenAtEnd: leave
  notify: [phone]
  queue: true
  runner: slurm
  resources: {cpus: 2}
"""
WHOLE = TaskConfig(
    Limits(max_depth=3), "A task", "above", "top", "w", "explore", "user", "2026-11-21T23:06:18.986Z",
    ({"tool": "*", "pattern": "*", "answer": "deny"},), ChildrenAtEnd.LEAVE, ("phone",), True,
    {"cpus": 2, "runner": "slurm"},
)  # fmt: skip
KEYS = (
    "title", "parentTaskId", "rootTaskId", "parentInstance", "agent", "author", "createdAt", "permissions",
    "childrenAtEnd", "notify", "queue", "running",
)  # fmt: skip


@pytest.fixture
def task(tmp_path: Path) -> TaskDir:
    """Make a task of which only the head and what was parsed of it are on disk."""
    (tmp_path / "task.yaml").write_bytes(roster.initial(HEAD))
    store(TaskDir(tmp_path), HEAD, WHOLE)
    return TaskDir(tmp_path)


def change(task: TaskDir, **values: Any) -> None:
    """Write other values into the cache; None removes a key."""
    value = {**json.loads(Path(task.config_cache).read_bytes()), **values}
    text = json.dumps({key: said for key, said in value.items() if said is not None})
    Path(task.config_cache).write_text(text, encoding="utf-8")


def test_all_that_a_head_says_is_read_and_kept(task: TaskDir) -> None:
    assert all(said != default for said, default in zip(WHOLE[1:], TaskConfig(Limits())[1:], strict=True))
    assert cached(task, HEAD) == WHOLE
    Path(task.config_cache).unlink()
    assert read_config(task) == WHOLE


@pytest.mark.parametrize("key", KEYS)
def test_what_an_older_version_has_not_read_is_read_again(task: TaskDir, key: str) -> None:
    change(task, **{key: None})
    assert cached(task, HEAD) is None
    assert read_config(task) == WHOLE


def test_the_rest_of_what_it_has_read_holds_meanwhile(task: TaskDir) -> None:
    change(task, running=None)
    assert cached(task) == WHOLE._replace(running={})
    assert tree_of(task).id == "top"


def test_what_a_newer_version_adds_is_skipped(task: TaskDir) -> None:
    change(task, config={**Limits(max_depth=3).to_json(), "maxMoons": 1}, moons=["Io"])
    assert cached(task, HEAD) == WHOLE
