"""The calls of an MCP server that wait for workers: how long each may take, and what is known of it meanwhile."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any

import mcp_types as types

from agentctl.interfaces.mcp.call_threads import Threads
from agentctl.interfaces.mcp.clients import McpClients
from agentctl.interfaces.mcp.handles import Handle
from agentctl.interfaces.mcp.wire import Context, Teller
from agentctl.lean import NamedTuple
from agentctl.tools.definition import CAREFUL_S, Pending
from agentctl.tools.scope import Scope

#: Clients that wait as long as a call takes, by the names that they give themselves.
_PATIENT = frozenset({"claude-code"})


class WaitingCall(NamedTuple):
    """A call that waits: its scope, its workers, and the digest by which it is recognised when it is sent again."""

    scope: Scope
    pending: Pending
    tell: Teller
    #: The digest of the call.
    call: str
    #: Set if the call has asked a question by its answer.
    handle: Handle | None = None


def call_digest(params: types.CallToolRequestParams) -> str:
    """Return the digest by which a call is recognised when it is sent again."""
    said = json.dumps([params.name, params.arguments or {}], sort_keys=True)
    return blake2b(said.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


class McpCalls:
    """What the calls of a server share: its clients, and the threads in which they run.

    Args:
        call_s: How long a call may take; 0: without a limit; None: as long as the client is known to wait.
    """

    def __init__(self, clients: McpClients, threads: Threads, call_s: float | None) -> None:
        self.clients, self.threads, self._call_s = clients, threads, call_s

    def limit_s(self, ctx: Context) -> float | None:
        """Return how long a call may take."""
        if self._call_s is not None:
            return self._call_s or None
        client = ctx.session.client_params
        name = client.client_info.name if client is not None else ""
        return None if name in _PATIENT else CAREFUL_S

    async def wait(self, ctx: Context, waiting: WaitingCall, limit_s: float | None) -> Any:
        """Wait until a call's workers have all ended or its time is over; return its answer."""
        toolbox, scope, pending = self.clients.of(ctx).toolbox, waiting.scope, waiting.pending
        return await self.threads.run(
            lambda call: toolbox.finish(scope, pending, call), limit_s=limit_s, tell=waiting.tell
        )
