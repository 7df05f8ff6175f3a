"""How answers, tools and progress go over the wire."""

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
from agentctl.domain.plaintext import whole_json
from agentctl.errors import AgentctlError
from agentctl.lean import NamedTuple
from agentctl.tools.definition import Pending, Target
from agentctl.tools.place import Place
from agentctl.tools.progress import doing
from agentctl.tools.registry import Offered, is_error


class Begun(NamedTuple):
    """A call whose workers were started, and the place in which they were."""

    place: Place
    pending: Pending


#: Its group holds what outlives a call.
Context = ServerRequestContext[TaskGroup, Any]


def is_modern(ctx: Context) -> bool:
    """Tell whether the client speaks a protocol in which a server asks by its answers."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


class Teller:
    """Tells the caller that its call still waits, for whom, and what they do, if it wants to be told."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        # One for each call, however often it waits: what is told of a call must grow.
        self._begun = monotonic()
        self._waited: tuple[Place, Sequence[Target]] | None = None

    def waits_for(self, place: Place, targets: Sequence[Target]) -> None:
        """Note for whom the call waits."""
        self._waited = (place, targets)

    async def tell(self) -> None:
        """Tell it now."""
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
            return ""  # Whatever cannot be read now: the call goes on.


def as_tool(offered: Offered) -> types.Tool:
    """Return a tool as it is listed."""
    return types.Tool.model_validate(offered.to_json(), by_name=False)


def as_result(answer: Any) -> types.CallToolResult:
    """Return an answer as a tool's result: as text, and, where it is an object, as that."""
    answer = whole_json(answer)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=json.dumps(answer, ensure_ascii=False))],
        structured_content=dict(answer) if isinstance(answer, Mapping) else None,
        is_error=is_error(answer),
    )
