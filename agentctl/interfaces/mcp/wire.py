"""Converts answers, tools and progress to the types of the `mcp` library."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import anyio
import mcp_types as types
from anyio.abc import TaskGroup
from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from agentctl.adapters.clock import monotonic
from agentctl.domain.text.plaintext import whole_json
from agentctl.errors import AgentctlError
from agentctl.lean import NamedTuple
from agentctl.tools.awaited_worker import Target
from agentctl.tools.definition import Pending
from agentctl.tools.progress import doing
from agentctl.tools.registry import Offered, is_error
from agentctl.tools.scope import Scope


class BegunCall(NamedTuple):
    """A call whose workers were started, and the scope in which it was begun."""

    scope: Scope
    pending: Pending


#: Its task group holds the forms, which may outlive their call.
Context = ServerRequestContext[TaskGroup, Any]


def is_modern(ctx: Context) -> bool:
    """Return whether the client speaks a protocol in which a server asks questions in its answers."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


class Teller:
    """Sends progress to a caller that wants it: that its call still waits, and what the workers are doing."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        # One start for each call, however often it waits: the progress of a call must grow.
        self._begun = monotonic()
        self._waited: tuple[Scope, Sequence[Target]] | None = None

    def waits_for(self, scope: Scope, targets: Sequence[Target]) -> None:
        """Note which workers the call waits for."""
        self._waited = (scope, targets)

    async def tell(self) -> None:
        """Send the progress of the call now."""
        if not (self._ctx.meta or {}).get("progress_token"):
            return
        what = await anyio.to_thread.run_sync(self._doing)
        passed = round(monotonic() - self._begun, 3)
        message = f"waiting, {passed:.0f} s" + (f": {what}" if what else "")
        await self._ctx.session.report_progress(passed, message=message)

    def _doing(self) -> str:
        if self._waited is None:
            return ""
        try:
            return doing(*self._waited)
        except (AgentctlError, OSError):
            return ""  # The call goes on, even if something cannot be read now.


def as_tool(offered: Offered) -> types.Tool:
    """Return a tool as the protocol lists it."""
    return types.Tool.model_validate(offered.to_json(), by_name=False)


def as_result(answer: Any) -> types.CallToolResult:
    """Return an answer as a tool's result: as text, and, if it is an object, also as structured content."""
    answer = whole_json(answer)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=json.dumps(answer, ensure_ascii=False))],
        structured_content=dict(answer) if isinstance(answer, Mapping) else None,
        is_error=is_error(answer),
    )
