"""The items of `codex exec` as those of the app-server: the same things under other names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentctl.drivers.codex.items import as_dict, as_list, as_text, row_id

_TYPES = {"collab_tool_call": "collabAgentToolCall"}


def item_of(told: Mapping[str, Any], earlier: int) -> dict[str, Any]:
    """Return an item as the app-server would tell it.

    Args:
        earlier: How many runs there were before in the same activity: each counts its items anew.
    """
    item = {camel(key): value for key, value in told.items()}
    kind = as_text(told.get("type"))
    item["type"] = _TYPES.get(kind) or camel(kind)
    item["id"] = row_id(as_text(told.get("id")), earlier)
    item["status"] = camel(as_text(told.get("status")))
    match kind:
        case "reasoning":
            item["summary"] = [told.get("text")]
        case "file_change":
            item["changes"] = [_change(as_dict(change)) for change in as_list(told.get("changes"))]
        case "collab_tool_call":
            item["tool"] = camel(as_text(told.get("tool")))
            states = as_dict(told.get("agents_states")).items()
            item["agentsStates"] = {thread: _state(as_dict(state)) for thread, state in states}
    return item


def plan_of(told: Mapping[str, Any]) -> str:
    """Return the agent's list of what is to be done, a line each."""
    steps = [as_dict(step) for step in as_list(told.get("items"))]
    return "\n".join(
        f"{'[x]' if step.get('completed') is True else '[ ]'} {as_text(step.get('text'))}" for step in steps
    )


def camel(name: str) -> str:
    """Return a name in the app-server's spelling.

    >>> camel("command_execution"), camel("id")
    ('commandExecution', 'id')
    """
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def _change(change: Mapping[str, Any]) -> dict[str, Any]:
    kind = change.get("kind")
    return {**change, "kind": {"type": kind} if isinstance(kind, str) else as_dict(kind)}


def _state(state: Mapping[str, Any]) -> dict[str, Any]:
    return {**state, "status": camel(as_text(state.get("status")))}
