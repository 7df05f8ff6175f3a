"""Questions of workers put to the user of the client, while a call waits for them.

Only for a person's own session: an agent that calls gets the question as data, and answers it or asks its own user.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError

from agentctl.adapters.clock import monotonic
from agentctl.adapters.taskdir import AgentDir
from agentctl.errors import AgentctlError
from agentctl.mcp import forms, handles
from agentctl.mcp.handles import Handle
from agentctl.operations.gathering import Key, Sight
from agentctl.tools.definition import Pending
from agentctl.tools.place import Place

if TYPE_CHECKING:
    from agentctl.mcp.server import AgentctlServer, Context

_Asked = frozenset[tuple[Key, int]]


def can_ask(server: AgentctlServer, ctx: Context) -> bool:
    """Tell whether this client shows forms, and to a person."""
    capabilities = ctx.session.client_capabilities
    shows = capabilities is not None and capabilities.elicitation is not None
    return shows and server.toolbox.source.place().me is None


async def finish(server: AgentctlServer, ctx: Context, pending: Pending) -> Any:
    """Wait for a call's workers, and put their questions to the user meanwhile."""
    from agentctl.mcp.server import as_result, is_modern

    limit_s = server.limit_s(ctx)
    if not can_ask(server, ctx):
        return as_result(await server.wait(ctx, pending, limit_s))
    place = server.toolbox.source.place()
    if is_modern(ctx):
        return await _until_asked(server, ctx, handles.create(place.task, pending))
    deadline = None if limit_s is None else monotonic() + limit_s
    asked: _Asked = frozenset()
    while True:
        sight = await _news(server, pending, asked, _left(deadline))
        fresh = asked | _blocked(sight)
        if fresh == asked:
            return as_result(await server.wait(ctx, pending, 0))
        asked = fresh
        for agent, question in forms.open_forms(place, pending).values():
            # Not in this call's own group: who answers after its time is over is heard all the same.
            ctx.lifespan_context.start_soon(_ask, ctx, place, agent, question)


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - monotonic())


async def _news(server: AgentctlServer, pending: Pending, asked: _Asked, limit_s: float | None) -> Sight:
    return await server.threads.run(
        lambda call: server.toolbox.watch(pending, call, asked=asked), limit_s=limit_s, tell=None
    )


def _blocked(sight: Sight) -> _Asked:
    return frozenset((key, seen.seq) for key, seen in sight.items() if seen.is_news and not seen.is_terminal)


async def _ask(ctx: Context, place: Place, agent: AgentDir, question: dict[str, Any]) -> None:
    try:
        filled = await ctx.session.elicit_form(forms.message_of(agent, question), forms.schema_of(question))
    except (MCPError, anyio.ClosedResourceError, anyio.BrokenResourceError):
        return  # The client cannot, or is gone: the question waits for whoever else answers.
    if filled.action == "accept":
        content = dict(filled.content or {})
        await anyio.to_thread.run_sync(forms.answer, place, agent, question["id"], content)


# -- protocols in which a server asks by its answer --------------------------------------------------------------------


async def go_on(server: AgentctlServer, ctx: Context, token: str, responses: Mapping[str, Any]) -> Any:
    """Take a call up again with what its user has filled in."""
    place = server.toolbox.source.place()
    try:
        handle = handles.load(place.task, token)
    except AgentctlError as error:
        raise MCPError(types.INVALID_PARAMS, error.message) from error
    return await _until_asked(server, ctx, await anyio.to_thread.run_sync(take_answers, place, handle, responses))


def take_answers(place: Place, handle: Handle, responses: Mapping[str, Any]) -> Handle:
    """Pass on what was filled in; what was declined is not asked again."""
    open_ones = forms.open_forms(place, handle.pending)
    for key, filled in responses.items():
        told = filled if isinstance(filled, Mapping) else filled.model_dump()
        if key not in open_ones:
            continue  # Answered elsewhere, or never asked.
        agent, question = open_ones[key]
        if told.get("action") == "accept":
            forms.answer(place, agent, question["id"], told.get("content") or {})
        else:
            handle = handles.declined(place.task, handle, key)
    return handle


async def _until_asked(server: AgentctlServer, ctx: Context, handle: Handle) -> Any:
    from agentctl.mcp.server import as_result

    place, pending = server.toolbox.source.place(), handle.pending
    limit_s = server.limit_s(ctx)
    deadline = None if limit_s is None else monotonic() + limit_s
    asked: _Asked = frozenset()
    while True:
        sight = await _news(server, pending, asked, _left(deadline))
        fresh = asked | _blocked(sight)
        requests = input_requests(place, handle)
        if requests:
            return types.InputRequiredResult(input_requests=requests, request_state=handle.token)
        if fresh == asked:
            return as_result(await server.wait(ctx, pending, 0))
        asked = fresh


def input_requests(place: Place, handle: Handle) -> dict[str, types.InputRequest]:
    """Return the open questions as requests to the client, by names that stay theirs."""
    found: dict[str, types.InputRequest] = {}
    for key, (agent, question) in forms.open_forms(place, handle.pending).items():
        if key not in handle.declined:
            params = types.ElicitRequestFormParams(
                message=forms.message_of(agent, question), requested_schema=forms.schema_of(question)
            )
            found[key] = types.ElicitRequest(params=params)
    return found
