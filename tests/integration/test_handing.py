"""At stake: an agent gets agentctl's MCP server if it can use it, and does not pay for one that is of no use."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentctl.adapters.taskdir import Root, TaskDir
from agentctl.domain.agent.own_tools import SERVER
from agentctl.drivers.claude import DRIVER
from agentctl.drivers.order import Order
from agentctl.operations.start.agent_server import with_server
from tests.agent_steps import agent_world
from tests.life import set_config
from tests.steps import Task


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    return agent_world(tmp_path, monkeypatch)


def with_depth(task: Task, limit: int) -> TaskDir:
    """Set the task's `maxDepth`."""
    set_config(task, maxDepth=limit)
    return Root(str(task.path.parent.parent)).task(task.path.name)


def is_handed(task: TaskDir, tools: list[str] | None = None, *, asks: bool = True, read_only: bool = False) -> bool:
    """Return whether an agent gets agentctl's server, if its program takes servers."""
    order = Order(driver="claude", program="claude", agent="a", prompt="x", tools=tools, read_only=read_only)
    return SERVER in with_server(task, order, DRIVER._replace(asks=asks), {}).mcp_servers


def test_at_the_limit_of_the_depth_it_is_there_for_asking_alone(task: Task) -> None:
    limited = with_depth(task, 0)
    assert not is_handed(limited), "its program asks the user by itself"
    assert is_handed(limited, asks=False)
    assert is_handed(limited, ["Read", "mcp__agentctl__ask_user"]), "the definition names it"
    assert not is_handed(limited, ["Read"], asks=False), "the definition leaves it out"
    assert not is_handed(limited, asks=False, read_only=True)


def test_above_the_limit_it_starts_sub_agents_with_it(task: Task) -> None:
    free = with_depth(task, 1)
    assert is_handed(free)
    assert not is_handed(free, ["Read"])
    assert not is_handed(free, read_only=True)
