"""How answers, tools and progress go over the wire."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import mcp_types as types
from anyio.abc import TaskGroup
from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from agentctl.domain.plaintext import whole_json
from agentctl.mcp.threads import Tell
from agentctl.tools.definition import Pending
from agentctl.tools.registry import Offered, is_error

#: Its group holds what outlives a call.
Context = ServerRequestContext[TaskGroup, Any]


def is_modern(ctx: Context) -> bool:
    """Tell whether the client speaks a protocol in which a server asks by its answers."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def teller(ctx: Context, pending: Pending | None = None) -> Tell:
    """Return what tells the caller that its call still waits."""
    waited = f" for {len(pending.targets)} agent(s)" if pending is not None else ""

    async def tell(passed: float) -> None:
        await ctx.session.report_progress(passed, message=f"waiting{waited}, {passed:g} s")

    return tell


def as_tool(offered: Offered) -> types.Tool:
    """Return a tool as it is listed."""
    tool, description = offered
    hints = types.ToolAnnotations(
        read_only_hint=tool.read_only, destructive_hint=tool.destructive, open_world_hint=tool.spawns
    )
    return types.Tool(name=tool.name, description=description, input_schema=tool.schema, annotations=hints)


def as_result(answer: Any) -> types.CallToolResult:
    """Return an answer as a tool's result: as text, and, where it is an object, as that."""
    answer = whole_json(answer)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=json.dumps(answer, ensure_ascii=False))],
        structured_content=dict(answer) if isinstance(answer, Mapping) else None,
        is_error=is_error(answer),
    )
