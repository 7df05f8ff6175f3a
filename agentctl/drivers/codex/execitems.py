"""Translates the items of `codex exec` into those of the app-server, which have other names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentctl.domain.names import camel
from agentctl.drivers.codex.items import row_id
from agentctl.drivers.values import list_in, object_in, text_in

_TYPES = {"collab_tool_call": "collabAgentToolCall"}


def item_of(raw: Mapping[str, Any], earlier: int) -> dict[str, Any]:
    """Return an item as the app-server would send it.

    Args:
        earlier: The number of earlier runs in the same activity: each run counts its items from the start.
    """
    item = {camel(key): value for key, value in raw.items()}
    kind = text_in(raw.get("type"))
    item["type"] = _TYPES.get(kind) or camel(kind)
    item["id"] = row_id(text_in(raw.get("id")), earlier)
    item["status"] = camel(text_in(raw.get("status")))
    match kind:
        case "reasoning":
            item["summary"] = [raw.get("text")]
        case "file_change":
            item["changes"] = [_change(object_in(change)) for change in list_in(raw.get("changes"))]
        case "collab_tool_call":
            item["tool"] = camel(text_in(raw.get("tool")))
            states = object_in(raw.get("agents_states")).items()
            item["agentsStates"] = {thread: _state(object_in(state)) for thread, state in states}
    return item


def plan_of(raw: Mapping[str, Any]) -> str:
    """Return the agent's to-do list, one line for each step."""
    steps = [object_in(step) for step in list_in(raw.get("items"))]
    return "\n".join(
        f"{'[x]' if step.get('completed') is True else '[ ]'} {text_in(step.get('text'))}" for step in steps
    )


def _change(change: Mapping[str, Any]) -> dict[str, Any]:
    kind = change.get("kind")
    return {**change, "kind": {"type": kind} if isinstance(kind, str) else object_in(kind)}


def _state(state: Mapping[str, Any]) -> dict[str, Any]:
    return {**state, "status": camel(text_in(state.get("status")))}
