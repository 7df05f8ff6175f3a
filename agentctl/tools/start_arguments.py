"""What a caller may choose for an agent that it starts (driver, model, effort, limits), and what the agent inherits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agentctl.domain.agent.agentspec import EFFORTS, AgentSpec
from agentctl.errors import AgentctlError
from agentctl.operations.start.options import OF_AGENTS, TOOLS
from agentctl.operations.start.permissions import asking
from agentctl.supervision.worker.spec import read_order
from agentctl.tools.definition import flag, number, text
from agentctl.tools.scope import Scope

#: The arguments that become fields of `AgentWork` unchanged; `permissions` is made stricter first.
_AS_GIVEN = [option.name for option in OF_AGENTS if TOOLS in option.also and option.name != "permissions"]

MODEL = {
    "model": text(
        "Another model. Default: its definition's, else that of the worker that starts it, else the program's own."
    )
}
KEY = {"key": text("A name for this request: sent again under it, as when its answer was lost, it does nothing twice.")}
#: What a tool call can choose for the agent that it starts, besides the model.
START_ARGUMENTS: dict[str, Mapping[str, Any]] = {
    "effort": text("How much it thinks. Default: as for the model.", enum=list(EFFORTS)),
    "max_turns": number(
        "It is stopped after this many tool rounds; its definition's limit, if any, applies too.",
        low=1,
        high=100_000,
        whole=True,
    ),
    "driver": text("The program that runs it, such as claude, codex, opencode: for a second opinion from elsewhere."),
    "permissions": text(
        "ask: it has to ask even for what it may do unasked; deny: all that needs a permission is denied.",
        enum=["ask", "deny"],
    ),
    "worktree": flag("It works in a git worktree and on a branch of its own: for agents that write at the same time."),
}


def start_fields(scope: Scope, spec: AgentSpec, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of `AgentWork` for an agent, without those that its definition sets.

    Rules can only be tightened here, never loosened: the caller is a model.
    """
    found = {name: given[name] for name in _AS_GIVEN if name in given}
    found |= _inherited(scope, spec, found)
    chosen = given.get("permissions")
    if chosen is not None:
        found["permissions"] = json.dumps(asking(scope.task, spec)) if chosen == "ask" else chosen
    return found


def _inherited(scope: Scope, spec: AgentSpec, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an agent inherits from its caller, unless the call or its definition says otherwise."""
    own = _own_order(scope)
    driver = chosen.get("driver") or spec.driver or own.get("driver")
    found = {"driver": driver} if spec.driver is None else {}
    if driver == own.get("driver"):
        found |= {name: own.get(name) for name in ("model", "effort") if getattr(spec, name) is None}
    return {name: value for name, value in found.items() if isinstance(value, str) and name not in chosen}


def _own_order(scope: Scope) -> Mapping[str, Any]:
    if scope.me is None:
        return {}
    try:
        order = read_order(scope.me.worker) or {}
    except AgentctlError:
        return {}
    return order if order.get("driver") != "command" else {}
