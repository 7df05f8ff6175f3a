"""The MCP server: lists the tools that can be used now, and runs their calls.

A caller that breaks a call off, or goes away, stops no worker: its work goes on, and can be waited for again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
from anyio import create_task_group
from anyio.abc import TaskGroup
from mcp.server.lowlevel import Server

from agentctl import __version__
from agentctl.adapters.taskdir import TreeDir
from agentctl.adapters.treedir import tree_of
from agentctl.interfaces.mcp import question_forms, tasks_extension
from agentctl.interfaces.mcp.call_threads import Threads
from agentctl.interfaces.mcp.clients import McpClients
from agentctl.interfaces.mcp.waiting_calls import McpCalls, WaitingCall, call_digest
from agentctl.interfaces.mcp.wire import BegunCall, Context, Teller, as_result, as_tool
from agentctl.operations.start.spare_shims import keep_shims_ready
from agentctl.tools.definition import Call, Pending
from agentctl.tools.registry import Toolbox
from agentctl.tools.waiting import WAIT

PROGRESS_S = 10.0


class AgentctlServer:
    """One server, for one client or, over HTTP, for several.

    Args:
        call_s: How long a call may take; 0: without a limit; None: as long as the client is known to wait.
    """

    def __init__(self, toolbox: Toolbox, *, call_s: float | None = None, progress_s: float = PROGRESS_S) -> None:
        toolbox.call_s = call_s
        self._calls = McpCalls(McpClients(toolbox), Threads(progress_s), call_s)
        #: The root task of the latest call that started workers: a spare shim is kept for it.
        self._tree: TreeDir | None = None
        self.server: Server[TaskGroup] = Server(
            "agentctl", version=__version__, instructions=toolbox.instructions(), lifespan=self._lifespan,
            on_list_tools=self._list, on_call_tool=self._call,
        )  # fmt: skip
        tasks_extension.install(self.server, self._calls)

    async def _list(self, ctx: Context, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        toolbox = self._calls.clients.of(ctx).toolbox
        offered = await self._calls.threads.run(lambda _call: toolbox.offered())
        return types.ListToolsResult(tools=[as_tool(one) for one in offered])

    async def _call(self, ctx: Context, params: types.CallToolRequestParams) -> Any:
        """Call a tool; wait for a long call, or hand it over to a client that can come back for the answer."""
        if params.request_state is not None:
            return await question_forms.continue_call(self._calls, ctx, params)
        toolbox, tell = self._calls.clients.of(ctx).toolbox, Teller(ctx)
        begun = await self._calls.threads.run(
            lambda call: self._begin(toolbox, params, call), limit_s=self._calls.limit_s(ctx), tell=tell
        )
        if not isinstance(begun, BegunCall):
            is_wait = params.name in (WAIT.name, *WAIT.other_names)
            return as_result(await question_forms.with_forms(self._calls, ctx, begun) if is_wait else begun)
        if tasks_extension.is_spoken_by(ctx):
            return await tasks_extension.answer_with_token(self._calls, begun)
        waiting = WaitingCall(begun.scope, begun.pending, tell, call_digest(params))
        return await question_forms.finish(self._calls, ctx, waiting)

    def _begin(self, toolbox: Toolbox, params: types.CallToolRequestParams, call: Call) -> Any:
        begun = toolbox.begin(params.name, params.arguments or {}, call)
        if not isinstance(begun, Pending):
            return begun
        scope = toolbox.session.scope()
        self._tree = tree_of(scope.task)  # A caller that has started one worker will start more.
        keep_shims_ready(self._tree, 1)
        return BegunCall(scope, begun)

    @asynccontextmanager
    async def _lifespan(self, _server: Server[TaskGroup]) -> AsyncIterator[TaskGroup]:
        """Yield the task group for forms: they may be filled in after their call."""
        async with create_task_group() as group:
            yield group
            group.cancel_scope.cancel()
        if self._tree is not None:
            keep_shims_ready(self._tree, 0)
