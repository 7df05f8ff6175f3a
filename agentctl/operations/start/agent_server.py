"""The MCP server that agentctl gives to an agent, so that it can start sub-agents and ask the user."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import agentctl
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.domain.agent.own_tools import OFFER_VARIABLE, PREFIX, SERVER, ours_among
from agentctl.drivers.dialogue import Driver
from agentctl.drivers.order import Order
from agentctl.errors import AgentctlError
from agentctl.operations.where.lineage import depth_in, depth_limit, true_caller
from agentctl.supervision.worker.environment import INSTANCE_VARIABLE, ROOT_VARIABLE, TASK_VARIABLE

#: The agents below have limits of their own; the tools that start them need no permission.
SERVER_RULE = {"tool": f"{PREFIX}*", "pattern": "*", "answer": "allow"}
#: A call lasts as long as a sub-agent works.
_CALL_S = 7 * 86_400
_PROGRAM = Path(agentctl.__file__).resolve().parent / "interfaces" / "cli" / "early.py"
_START_S = 120


def with_server(task: TaskDir, order: Order, driver: Driver, environ: Mapping[bytes, bytes]) -> Order:
    """Return an order with our server in it, if the agent may use one and benefits from it.

    An agent that may only read gets no server at all. The order names the variables that are to be passed on, since
    some programs pass hardly any of theirs to a server, and a sub-agent needs its keys.
    """
    if not (_may(order, driver) and _gains(task, order, driver)) or not _has_library(driver):
        return order
    command = server_command(driver.tools, call_s=0)
    server: dict[str, Any] = {
        "command": command[0],
        "args": command[1:],
        "env_vars": sorted(os.fsdecode(name) for name in environ),
        "timeout": _CALL_S * 1000,
        "tool_timeout_sec": _CALL_S,
        "startup_timeout_sec": _START_S,
        "supports_parallel_tool_calls": True,
        # Claude Code shows its model the whole tools at once, not just names to be searched for (2.1.330).
        "alwaysLoad": True,
        # Codex waits for the server before it asks the model, which would otherwise begin without these tools.
        "required": True,
    }
    return order._replace(
        mcp_servers={**order.mcp_servers, SERVER: server}, permissions=[*order.permissions, dict(SERVER_RULE)]
    )


def server_command(dialect: str, *, call_s: float) -> list[str]:
    """Return the command line of a server: `agentctl mcp`, in the form that answers before its library is loaded."""
    return [sys.executable, "-P", "-S", str(_PROGRAM), f"--tools={dialect}", f"--call-seconds={call_s:g}"]


def _has_library(driver: Driver) -> bool:
    """Return whether the server can run; a program with the tools in itself only has its answers prepared."""
    from importlib.util import find_spec

    return "delegation" in driver.honours or find_spec("mcp") is not None


def is_ours(server: Mapping[str, Any]) -> bool:
    """Return whether a server is the one that `with_server` adds."""
    return str(_PROGRAM) in server.get("args", ())


def _may(order: Order, driver: Driver) -> bool:
    can_delegate = not driver.honours.isdisjoint({"mcpServers", "delegation"})
    return can_delegate and not order.read_only and bool(ours_among(order.tools))


def _gains(task: TaskDir, order: Order, driver: Driver) -> bool:
    """Return whether a server is worth its memory and its share of the agent's start-up time.

    For an agent that may start nothing, a server is useful only to ask questions, which most programs can do
    themselves, or if the definition names its tools.
    """
    return order.tools is not None or not driver.asks or _may_start(task)


def _may_start(task: TaskDir) -> bool:
    caller = true_caller()
    try:
        return depth_in(task, caller) < depth_limit(task, caller)
    except AgentctlError:
        return False


def with_identity(order: Order, worker: WorkerDir, more: Mapping[str, str] = MappingProxyType({})) -> Order:
    """Return an order whose server knows which worker it serves.

    Args:
        more: Other variables that it needs.
    """
    server = order.mcp_servers.get(SERVER)
    if server is None:
        return order
    root = str(worker.task.root.path)
    identity = {ROOT_VARIABLE: root, TASK_VARIABLE: worker.task.id, INSTANCE_VARIABLE: worker.instance}
    if is_ours(server):
        identity[OFFER_VARIABLE] = str(worker.offer)
    return order._replace(mcp_servers={**order.mcp_servers, SERVER: {**server, "env": {**identity, **more}}})
