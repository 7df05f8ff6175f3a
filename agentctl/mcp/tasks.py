"""MCP's Tasks extension: a call answers at once with a token, and the client comes back for the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import Field

from agentctl.adapters.clock import now_iso
from agentctl.errors import AgentctlError
from agentctl.mcp import elicitation, handles
from agentctl.mcp.handles import Handle
from agentctl.mcp.wire import Context, as_result, is_modern
from agentctl.operations.cancelling import cancel_workers
from agentctl.operations.gathering import Key, Sight
from agentctl.tools.definition import Call, Pending
from agentctl.tools.place import Place
from agentctl.tools.registry import Toolbox
from agentctl.tools.results import question_of

if TYPE_CHECKING:
    from agentctl.mcp.server import AgentctlServer

EXTENSION = "io.modelcontextprotocol/tasks"
#: How often a client should ask.
_POLL_MS = 1000


class TaskParams(types.RequestParams):
    """Names a call that was handed over."""

    task_id: str


class UpdateParams(TaskParams):
    """What the user has filled in."""

    input_responses: dict[str, Any] = Field(default_factory=dict)


def is_spoken_by(ctx: Context) -> bool:
    """Tell whether the client has declared the extension with this request."""
    capabilities = ctx.session.client_capabilities
    return is_modern(ctx) and capabilities is not None and EXTENSION in (capabilities.extensions or {})


def install(server: AgentctlServer) -> None:
    """Add the extension's methods to a server."""

    async def get(ctx: Context, params: TaskParams) -> dict[str, Any]:
        _refuse_strangers(ctx)
        can_ask = elicitation.can_ask(ctx)
        return await _answered(server, lambda: _told(server.toolbox, params.task_id, can_ask))

    async def update(ctx: Context, params: UpdateParams) -> dict[str, Any]:
        _refuse_strangers(ctx)
        return await _answered(server, lambda: _update(server.toolbox, params))

    async def cancel(ctx: Context, params: TaskParams) -> dict[str, Any]:
        _refuse_strangers(ctx)
        return await _answered(server, lambda: _cancel(server.toolbox, params.task_id))

    server.server.extensions[EXTENSION] = {}
    server.server.add_request_handler("tasks/get", TaskParams, get)
    server.server.add_request_handler("tasks/update", UpdateParams, update)
    server.server.add_request_handler("tasks/cancel", TaskParams, cancel)


def _refuse_strangers(ctx: Context) -> None:
    if not is_modern(ctx):  # There methods of the same names mean something else.
        raise MCPError(types.METHOD_NOT_FOUND, "Method not found", ctx.method)


async def _answered(server: AgentctlServer, work: Any) -> dict[str, Any]:
    try:
        told: dict[str, Any] = await server.threads.run(lambda _call: work())
    except AgentctlError as error:
        raise MCPError(types.INVALID_PARAMS, error.message) from error
    return told


async def hand_over(server: AgentctlServer, pending: Pending) -> dict[str, Any]:
    """Keep a call, durably, and answer with its token."""

    def keep() -> Handle:
        return handles.create(server.toolbox.source.place().task, pending)

    handle = await server.threads.run(lambda _call: keep())
    return {"resultType": "task", **_head(handle, "working", "started")}


def _head(handle: Handle, status: str, message: str) -> dict[str, Any]:
    return {
        "taskId": handle.token,
        "status": status,
        "statusMessage": message,
        "createdAt": handle.created_at,
        "lastUpdatedAt": now_iso(),
        "ttlMs": None,
        "pollIntervalMs": _POLL_MS,
    }


def _told(toolbox: Toolbox, token: str, can_ask: bool) -> dict[str, Any]:
    """Return how a call stands: its result, once all its workers have ended."""
    place = toolbox.source.place()
    handle = handles.load(place.task, token)
    sight = toolbox.watch(handle.pending, Call(limit_s=0))
    ended = [key for key in handle.pending.keys if key in sight and sight[key].is_terminal]
    if len(ended) == len(handle.pending.keys):
        if handle.is_cancelled and any(sight[key].status == "cancelled" for key in ended):
            return _head(handle, "cancelled", "cancelled")
        result = as_result(toolbox.answer(place, handle.pending))
        return _head(handle, "completed", "ended") | {"result": result.model_dump(by_alias=True, exclude_none=True)}
    requests = elicitation.input_requests(place, handle) if can_ask else {}
    if requests:
        asked = {key: one.model_dump(by_alias=True, exclude_none=True) for key, one in requests.items()}
        return _head(handle, "input_required", "waits for an answer") | {"inputRequests": asked}
    return _head(handle, "working", _progress(place, handle.pending.keys, sight, len(ended)))


def _progress(place: Place, keys: list[Key], sight: Sight, ended: int) -> str:
    """Return how far it is, and who waits for an answer that this client cannot be asked for."""
    told = f"{ended} of {len(keys)} ended"
    for key in keys:
        seen = sight.get(key)
        question = question_of(place.agent_of(key)) if seen and seen.is_news and not seen.is_terminal else None
        if question is not None and not question.get("idle"):
            told += f"; {key.instance} asks: {question['question']} (agentctl interact respond {key.instance} ANSWER)"
    return told


def _update(toolbox: Toolbox, params: UpdateParams) -> dict[str, Any]:
    place = toolbox.source.place()
    elicitation.take_answers(place, handles.load(place.task, params.task_id), params.input_responses)
    return {}


def _cancel(toolbox: Toolbox, token: str) -> dict[str, Any]:
    place = toolbox.source.place()
    handle = handles.load(place.task, token)
    handles.cancelled(place.task, handle)
    for task_id in {key.task_id for key in handle.pending.keys}:
        names = [key.instance for key in handle.pending.keys if key.task_id == task_id]
        cancel_workers(place.task.sibling(task_id), names, wait=False)
    return {}
