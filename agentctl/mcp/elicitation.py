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
from agentctl.mcp.wire import Context, as_result, is_modern, teller
from agentctl.operations.gathering import Key, Sight
from agentctl.operations.lineage import true_caller
from agentctl.tools.definition import Pending
from agentctl.tools.place import Place

if TYPE_CHECKING:
    from agentctl.mcp.server import AgentctlServer

_Asked = frozenset[tuple[Key, int]]


def can_ask(ctx: Context) -> bool:
    """Tell whether this client shows forms, and to a person."""
    capabilities = ctx.session.client_capabilities
    shows = capabilities is not None and capabilities.elicitation is not None
    return shows and true_caller() is None


async def finish(server: AgentctlServer, ctx: Context, pending: Pending) -> Any:
    """Wait for a call's workers, and put their questions to the user meanwhile."""
    limit_s = server.limit_s(ctx)
    if not can_ask(ctx):
        return as_result(await server.wait(ctx, pending, limit_s))
    place = server.toolbox.source.place()
    if is_modern(ctx):
        return await _until_asked(server, ctx, handles.create(place.task, pending))
    deadline = None if limit_s is None else monotonic() + limit_s
    asked: _Asked = frozenset()
    while True:
        sight = await _news(server, ctx, pending, asked, _left(deadline))
        fresh = asked | _blocked(sight)
        if fresh == asked:
            return as_result(await server.wait(ctx, pending, 0))
        asked = fresh
        for agent, question in forms.open_forms(place, pending).values():
            _put(server, ctx, place, agent, question)


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - monotonic())


async def _news(server: AgentctlServer, ctx: Context, pending: Pending, asked: _Asked, limit_s: float | None) -> Sight:
    return await server.threads.run(
        lambda call: server.toolbox.watch(pending, call, asked=asked), limit_s=limit_s, tell=teller(ctx, pending)
    )


def _blocked(sight: Sight) -> _Asked:
    return frozenset((key, seen.seq) for key, seen in sight.items() if seen.is_news and not seen.is_terminal)


def _put(server: AgentctlServer, ctx: Context, place: Place, agent: AgentDir, question: dict[str, Any]) -> None:
    """Put a question to the user, once; not as a part of the call: who answers after its time is heard all the same."""
    key = forms.key_of(agent, question)
    if key not in server.asked:
        server.asked.add(key)
        ctx.lifespan_context.start_soon(_ask, ctx, place, agent, question)


async def with_forms(server: AgentctlServer, ctx: Context, answer: Any) -> Any:
    """Put the questions in an answer of `wait` to the user, where the client can, and say so in it."""
    results = answer.get("results") if isinstance(answer, dict) else None
    asking = [name for name, one in (results or {}).items() if "question" in one and not one["question"].get("idle")]
    if not asking or is_modern(ctx) or not can_ask(ctx):
        return answer
    place = server.toolbox.source.place()
    for name in asking:
        _put(server, ctx, place, place.find(name), dict(answer["results"][name]["question"]))
        answer["results"][name]["question"]["asked"] = "the user is being asked: wait for it again"
    return answer


async def _ask(ctx: Context, place: Place, agent: AgentDir, question: dict[str, Any]) -> None:
    """Show a question's form and pass the answer on. Whatever fails here must not end the server."""
    try:
        form = forms.form_of(agent, question)
        filled = await ctx.session.elicit_form(form.message, form.schema)
        if filled.action == "accept":
            content = dict(filled.content or {})
            await anyio.to_thread.run_sync(forms.answer, place, agent, question, content)
    except Exception:  # noqa: BLE001
        return  # The client cannot, is gone, or sent nonsense: the question waits for whoever else answers.


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
    """Pass on what was filled in; what was declined, or answered with nothing that was offered, is not asked again."""
    open_ones = forms.open_forms(place, handle.pending)
    for key, filled in responses.items():
        told = filled if isinstance(filled, Mapping) else filled.model_dump()
        if key not in open_ones:
            continue  # Answered elsewhere, or never asked.
        agent, question = open_ones[key]
        is_filled = told.get("action") == "accept" and forms.answer(place, agent, question, told.get("content") or {})
        if not is_filled:
            handle = handles.declined(place.task, handle, key)
    return handle


async def _until_asked(server: AgentctlServer, ctx: Context, handle: Handle) -> Any:
    place, pending = server.toolbox.source.place(), handle.pending
    limit_s = server.limit_s(ctx)
    deadline = None if limit_s is None else monotonic() + limit_s
    asked: _Asked = frozenset()
    while True:
        sight = await _news(server, ctx, pending, asked, _left(deadline))
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
            form = forms.form_of(agent, question)
            params = types.ElicitRequestFormParams(message=form.message, requested_schema=form.schema)
            found[key] = types.ElicitRequest(params=params)
    return found
