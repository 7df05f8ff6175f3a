"""MCP's Tasks extension: a call answers at once with a token, and the client comes back for the result."""

from __future__ import annotations

from typing import Any

import mcp_types as types
from anyio.abc import TaskGroup
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from pydantic import Field, ValidationError

from agentctl.adapters.files import read_known
from agentctl.domain.names import WorkerId
from agentctl.errors import AgentctlError
from agentctl.interfaces.mcp import forms, handles, question_forms
from agentctl.interfaces.mcp.early_answers import EXTENSION
from agentctl.interfaces.mcp.handles import Handle
from agentctl.interfaces.mcp.waiting_calls import McpCalls
from agentctl.interfaces.mcp.wire import BegunCall, Context, as_result, is_modern
from agentctl.lean import NamedTuple
from agentctl.operations.stop.cancelling import cancel_found
from agentctl.operations.where.locating import find_worker
from agentctl.operations.where.ownership import check_may_be_stopped
from agentctl.tools.definition import Call
from agentctl.tools.hints import wrong_for_model
from agentctl.tools.progress import doing
from agentctl.tools.registry import Toolbox
from agentctl.tools.results import question_of
from agentctl.tools.scope import Scope, is_for_worker
from agentctl.tools.session import Session

#: How often a client should ask.
_POLL_MS = 1000


class TaskParams(types.RequestParams):
    """The parameters that name a call which was handed over."""

    task_id: str


class UpdateParams(TaskParams):
    """The parameters with the forms that the user has filled in."""

    input_responses: dict[str, Any] = Field(default_factory=dict)


def is_spoken_by(ctx: Context) -> bool:
    """Return whether the client has declared the extension with this request."""
    capabilities = ctx.session.client_capabilities
    return is_modern(ctx) and capabilities is not None and EXTENSION in (capabilities.extensions or {})


def install(server: Server[TaskGroup], calls: McpCalls) -> None:
    """Add the extension's methods to a server."""

    async def get(ctx: Context, params: TaskParams) -> dict[str, Any]:
        _refuse_strangers(ctx, params)
        session = calls.clients.of(ctx).toolbox.session
        asks = _ClientKind(question_forms.shows_forms(ctx), is_for_worker())
        return await _answered(calls, lambda: _state_of(calls.clients.of(ctx).toolbox, _kept(session, params), asks))

    async def update(ctx: Context, params: UpdateParams) -> dict[str, Any]:
        _refuse_strangers(ctx, params)
        session = calls.clients.of(ctx).toolbox.session
        return await _answered(calls, lambda: _update(_kept(session, params), params))

    async def cancel(ctx: Context, params: TaskParams) -> dict[str, Any]:
        _refuse_strangers(ctx, params)
        session = calls.clients.of(ctx).toolbox.session
        return await _answered(calls, lambda: _cancel(_kept(session, params)))

    server.extensions[EXTENSION] = {}
    server.add_request_handler("tasks/get", TaskParams, get)
    server.add_request_handler("tasks/update", UpdateParams, update)
    server.add_request_handler("tasks/cancel", TaskParams, cancel)


def _refuse_strangers(ctx: Context, params: TaskParams) -> None:
    """Refuse clients without the extension, and requests whose headers name another task."""
    if not is_modern(ctx):  # In older protocols methods of the same names mean something else.
        raise MCPError(types.METHOD_NOT_FOUND, "Method not found", ctx.method)
    if not is_spoken_by(ctx):
        needed: dict[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        raise MCPError(
            types.MISSING_REQUIRED_CLIENT_CAPABILITY, f"{ctx.method} needs the extension {EXTENSION}", needed
        )
    if ctx.request is not None and decode_header_value(ctx.request.headers.get(MCP_NAME_HEADER)) != params.task_id:
        raise MCPError(types.HEADER_MISMATCH, f"{MCP_NAME_HEADER} header does not match the request's taskId")


async def _answered(calls: McpCalls, work: Any) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = await calls.threads.run(lambda _call: work())
    except AgentctlError as error:
        raise MCPError(types.INVALID_PARAMS, wrong_for_model(error)) from error
    return answer


class _Kept(NamedTuple):
    """A call that was handed over, and the scope in which it was begun."""

    scope: Scope
    handle: Handle


class _ClientKind(NamedTuple):
    """Whether a client shows forms, and whether it is an agent's."""

    shows_forms: bool
    is_worker: bool


def _kept(session: Session, params: TaskParams) -> _Kept:
    scope = session.at(handles.task_of(params.task_id))
    return _Kept(scope, handles.load(scope.task, params.task_id))


async def answer_with_token(calls: McpCalls, begun: BegunCall) -> dict[str, Any]:
    """Keep a call, durably, and answer with its token."""
    handle = await calls.threads.run(lambda _call: handles.create(begun.scope.task, begun.pending))
    return {"resultType": "task", **_head(handle, "working", "started", handle.created_at)}


def _head(handle: Handle, status: str, message: str, changed_at: str) -> dict[str, Any]:
    return {
        "taskId": handle.token,
        "status": status,
        "statusMessage": message,
        "createdAt": handle.created_at,
        "lastUpdatedAt": max(changed_at, handle.created_at),
        "ttlMs": handles.KEPT_S * 1000,
        "pollIntervalMs": _POLL_MS,
    }


def _state_of(toolbox: Toolbox, kept: _Kept, asks: _ClientKind) -> dict[str, Any]:
    """Return the state of a call, with its result if all its workers have ended, or one asks what no form can show."""
    scope, handle = kept
    if handle.answer is not None:
        return _completed(handle, handle.answer, handle.answered_at or handle.created_at)
    keys = handle.pending.keys
    sight = toolbox.watch(scope, handle.pending, Call(limit_s=0))
    ended = [key for key in keys if key in sight and sight[key].is_terminal]
    changed_at = _changed_at(scope, keys)
    if len(ended) == len(keys):
        if handle.cancelled_at and any(sight[key].status == "cancelled" for key in ended):
            return _head(handle, "cancelled", "cancelled", max(changed_at, handle.cancelled_at))
        return _completed(handle, toolbox.answer(scope, handle.pending), changed_at)
    open_ones = {} if asks.is_worker else forms.open_forms(scope, handle.pending)
    requests = question_forms.requests_of(open_ones, handle.declined) if asks.shows_forms else {}
    if requests:
        asked = {key: one.model_dump(by_alias=True, exclude_none=True) for key, one in requests.items()}
        return _head(handle, "input_required", "waits for an answer", changed_at) | {"inputRequests": asked}
    if open_ones and not toolbox.waits_through_questions(handle.pending):
        answer = toolbox.finish(scope, handle.pending, Call(limit_s=0))
        # A question is on disk a moment before it is in the log: an answer without it would be kept permanently.
        if "still_running" not in answer or "questions" in answer:
            handle = handles.answered(scope.task, handle, answer)
            return _completed(handle, answer, handle.answered_at or changed_at)
    return _head(handle, "working", doing(scope, handle.pending.targets), changed_at)


def _completed(handle: Handle, answer: Any, changed_at: str) -> dict[str, Any]:
    result = as_result(answer).model_dump(by_alias=True, exclude_none=True)
    return _head(handle, "completed", "ended", changed_at) | {"result": result}


def _changed_at(scope: Scope, keys: list[WorkerId]) -> str:
    """Return the time of the last change of some workers."""
    latest = ""
    for key in keys:
        worker = scope.agent_of(key)
        for file, name in ((worker.exit, "endedAt"), (worker.process, "startedAt")):
            at = read_known(file).get(name)
            latest = max(latest, at if isinstance(at, str) else "")
        question = question_of(worker)
        latest = max(latest, (question.asked_at if question is not None else None) or "")
    return latest


def _update(kept: _Kept, params: UpdateParams) -> dict[str, Any]:
    open_ones = forms.open_forms(kept.scope, kept.handle.pending)
    # Answers to questions that are not open, or not of this call, are ignored.
    given = {key: reply for key, reply in params.input_responses.items() if key in open_ones}
    try:
        replies = {key: types.ElicitResult.model_validate(reply, by_name=False) for key, reply in given.items()}
    except ValidationError as error:
        raise MCPError(types.INVALID_PARAMS, "Invalid params: an answer must be {action, content?}") from error
    question_forms.take_answers(kept.scope, kept.handle, replies)
    return {}


def _cancel(kept: _Kept) -> dict[str, Any]:
    scope, handle = kept
    handles.cancelled(scope.task, handle)
    workers = [scope.task.worker_at(key) for key in dict.fromkeys(handle.pending.keys)]
    for task in {worker.task.path: worker.task for worker in workers}.values():
        check_may_be_stopped(task)
    cancel_found([find_worker(one.task, one.instance) for one in workers], seen_from=scope.task, wait=False)
    return {}
