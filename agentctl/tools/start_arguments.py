"""What a caller may choose for an agent that it starts: driver, model, effort, limits; and what is inherited."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agentctl.domain.agentspec import EFFORTS, AgentSpec
from agentctl.errors import AgentctlError
from agentctl.operations.start.options import OF_AGENTS, TOOLS
from agentctl.operations.start.permissions import asking
from agentctl.supervision.worker.spec import read_order
from agentctl.tools.definition import flag, number, text
from agentctl.tools.scope import Scope

#: Wishes that are fields of `AgentWork` as they are; rules are made stricter first.
_AS_GIVEN = [option.name for option in OF_AGENTS if TOOLS in option.also and option.name != "permissions"]

MODEL = {
    "model": text(
        "Another model. Without it its definition's, else that of a worker that starts it, else the program's own."
    )
}
#: What one tool call can say of the agent that it starts, beside the model.
START_ARGUMENTS: dict[str, Mapping[str, Any]] = {
    "effort": text("How much it thinks; without it chosen as the model is.", enum=list(EFFORTS)),
    "max_turns": number(
        "After so many tool rounds it is stopped; its definition's limit, if it has one, holds too.",
        low=1,
        high=100_000,
        whole=True,
    ),
    "driver": text("The program that runs it, claude or codex: for a second opinion by another vendor."),
    "permissions": text(
        "ask: even what it may do unasked is asked about; deny: nothing that needs a permission is done.",
        enum=["ask", "deny"],
    ),
    "worktree": flag("It works in a git worktree and on a branch of its own: for several that write at once."),
}


def start_fields(scope: Scope, spec: AgentSpec, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of `AgentWork` for an agent, without those that its definition says.

    Rules can be tightened here, and not loosened: who calls is a model.
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
