"""How our own agent program is started, and the first line that it gets."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

import agentctl
from agentctl.domain.agent.own_tools import OFFER_VARIABLE, SERVER
from agentctl.drivers.order import Order

#: The program, run by the Python that runs this.
PROGRAM = os.path.join(
    os.path.dirname(os.path.realpath(agentctl.__file__)), "worker_programs", "plain_model", "__main__.py"
)
HONOURS = frozenset(
    {"model", "effort", "tools", "readOnly", "maxTurns", "maxBudgetUsd", "permissions", "ownUnderRules"}
    | {"resume", "keep", "delegation"}
)


def llm_argv(order: Order) -> list[str]:
    """Return the command line: -E -P, nothing of the environment or the folder is taken for a module of Python."""
    return [sys.executable, "-E", "-P", "-S", PROGRAM]


def llm_environ(_: Order, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the worker's environment: the keys in it are read by the program, and by what its tools start."""
    return dict(environ)


def conversation_of(order: Order) -> str:
    """Return the name of the conversation that an order writes: the worker whose file it is."""
    return f"{order.task_id}/{order.instance}"


def opening_line(order: Order) -> dict[str, Any]:
    """Return the first line."""
    server = order.mcp_servers.get(SERVER, {})
    offer = server.get("env", {}).get(OFFER_VARIABLE)
    fields = {
        "provider": dict(order.provider), "instructions": order.role, "effort": order.effort,
        "tools": order.tools, "readOnly": order.read_only, "walls": dict(order.walls),
        "session": conversation_of(order), "resume": order.resume, "maxTurns": order.max_turns,
        "maxBudgetUsd": order.max_budget_usd,
        "permissions": order.permissions, "deniedAbove": order.denied_above, "offer": offer, "run": run_of(order),
    }  # fmt: skip
    return {"type": "open", **{name: value for name, value in fields.items() if value is not None}}


def run_of(order: Order) -> str:
    """Return what the ids of an attempt begin with: the rows of one worker are all in one file."""
    return f"r{order.earlier_attempts}-" if order.earlier_attempts else ""
