"""Shows the questions of workers to the user of an MCP client, while a call waits for the workers.

Only in a person's own session. A question that no form settles (the client shows no forms, its user declines, or the
content is not an answer) is returned to the caller, as `questions`, unless its call waits through questions
(`Toolbox.waits_through_questions`): then people who look at the task answer them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError

from agentctl.adapters.clock import monotonic
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.names import WorkerId
from agentctl.domain.question import Question
from agentctl.errors import AgentctlError
from agentctl.interfaces.mcp import forms, handles
from agentctl.interfaces.mcp.clients import McpClient
from agentctl.interfaces.mcp.handles import Handle
from agentctl.interfaces.mcp.waiting_calls import McpCalls, WaitingCall, call_digest
from agentctl.interfaces.mcp.wire import Context, Teller, as_result, is_modern
from agentctl.operations.wait.keys import Sight
from agentctl.supervision.worker.questions import is_open
from agentctl.tools.definition import Call, Pending
from agentctl.tools.hints import wrong_for_model
from agentctl.tools.results import question_of
from agentctl.tools.scope import Scope, is_for_worker

_Asked = frozenset[tuple[WorkerId, int]]
#: How often to check whether a question was answered elsewhere, so that its form can be withdrawn.
#: This check is not a round of a wait (`WaitRounds`): it runs no queue and lends no slot. The waiting call does both.
_LOOK_S = 0.5


def shows_forms(ctx: Context) -> bool:
    """Return whether this client shows forms: one that names no mode does, one that names only other modes does not."""
    capabilities = ctx.session.client_capabilities
    shown = capabilities.elicitation if capabilities is not None else None
    return shown is not None and (shown.form is not None or shown.url is None)


def can_ask(ctx: Context) -> bool:
    """Return whether this client shows forms, and to a person."""
    return shows_forms(ctx) and not is_for_worker()


async def finish(calls: McpCalls, ctx: Context, waiting: WaitingCall) -> Any:
    """Wait for a call's workers, show their questions to the user meanwhile, and return the answer."""
    client = calls.clients.of(ctx)
    try:
        if is_for_worker():
            return as_result(await calls.wait(ctx, waiting, calls.limit_s(ctx)))
        if is_modern(ctx) and can_ask(ctx):
            return await _by_answers(calls, ctx, waiting)
        return await _by_forms(calls, ctx, client, waiting)
    except AgentctlError as error:
        return as_result(client.toolbox.error_result(error))


async def _by_forms(calls: McpCalls, ctx: Context, client: McpClient, waiting: WaitingCall) -> Any:
    """Wait until all have ended, or for a question that no form settles; return the answer."""
    scope, pending, deadline = waiting.scope, waiting.pending, _deadline(calls, ctx)
    to_the_end = client.toolbox.waits_through_questions(pending)
    asked: _Asked = frozenset()
    mine: set[str] = set()
    while True:
        sight = await _news(calls, ctx, waiting, asked, deadline, (client, mine))
        fresh = _blocked(sight or {}) - asked
        open_ones = await anyio.to_thread.run_sync(_open_questions, scope, pending)
        if can_ask(ctx):
            for key, (worker, question) in open_ones.items():
                if not question.idle:
                    mine.add(key)
                    _put(client, ctx, scope, worker, question)
        is_settled = can_ask(ctx) and not client.knows_unsettled(open_ones) and not _idle(open_ones)
        if (sight is not None and not fresh) or (open_ones and not is_settled and not to_the_end):
            return as_result(await calls.wait(ctx, waiting, 0))
        asked |= fresh
        mine = mine & set(open_ones) - client.unsettled


def _open_questions(scope: Scope, pending: Pending) -> dict[str, tuple[WorkerDir, Question]]:
    return forms.open_forms(scope, pending, with_idle=True)


def _idle(open_ones: Mapping[str, tuple[WorkerDir, Question]]) -> bool:
    return any(question.idle for _, question in open_ones.values())


def _deadline(calls: McpCalls, ctx: Context) -> float | None:
    limit_s = calls.limit_s(ctx)
    return None if limit_s is None else monotonic() + limit_s


async def _news(
    calls: McpCalls, ctx: Context, waiting: WaitingCall, asked: _Asked, deadline: float | None,
    forms_of: tuple[McpClient, set[str]] | None = None,
) -> Sight | None:  # fmt: skip
    """Return the state once all have ended, one asks, or the time is over; None if a form brought no answer."""
    limit_s = None if deadline is None else max(0.0, deadline - monotonic())
    toolbox = calls.clients.of(ctx).toolbox

    def watch(call: Call) -> Sight:
        return toolbox.watch(waiting.scope, waiting.pending, call, asked=asked)

    sight: Sight | None = None
    with anyio.CancelScope() as cancelling:
        if forms_of is not None:
            forms_of[0].waits(cancelling)
            if forms_of[0].knows_unsettled(forms_of[1]):
                return None
        try:
            sight = await calls.threads.run(watch, limit_s=limit_s, tell=waiting.tell)
        finally:
            if forms_of is not None:
                forms_of[0].waits(cancelling, is_over=True)
    return sight


def _blocked(sight: Sight) -> _Asked:
    return frozenset((key, seen.seq) for key, seen in sight.items() if seen.is_news and not seen.is_terminal)


# -- forms, while the call is open -------------------------------------------------------------------------------------


def _put(client: McpClient, ctx: Context, scope: Scope, worker: WorkerDir, question: Question) -> None:
    """Show a question to the user, once. The form outlives the call: an answer that comes later counts too."""
    key = forms.question_key(worker, question)
    if key not in client.shown and key not in client.unsettled:
        client.shown.add(key)
        ctx.lifespan_context.start_soon(_ask, client, ctx, scope, worker, question)


async def with_forms(calls: McpCalls, ctx: Context, answer: Any) -> Any:
    """Show the questions in an answer of `wait` to the user, if the client can; return the answer, which says so."""
    if is_modern(ctx) or not can_ask(ctx) or not isinstance(answer, dict):
        return answer
    client = calls.clients.of(ctx)
    for name, question in _questions_in(answer):
        scope = client.toolbox.session.scope()
        try:
            worker = await anyio.to_thread.run_sync(scope.find, name)
        except AgentctlError:
            continue  # It has been removed meanwhile.
        known = await anyio.to_thread.run_sync(question_of, worker)
        if known is None or known.idle:
            continue
        _put(client, ctx, scope, worker, known)
        is_shown = forms.question_key(worker, known) in client.shown
        question["asked"] = "the user is being asked: wait for it again" if is_shown else "the user did not answer"
    return answer


def _questions_in(answer: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the questions in an answer of `wait`, each with the name of its worker."""
    fresh = [(name, one["question"]) for name, one in answer.get("results", {}).items() if "question" in one]
    return [*fresh, *answer.get("questions", {}).items()]


async def _ask(client: McpClient, ctx: Context, scope: Scope, worker: WorkerDir, question: Question) -> None:
    """Show a question's form and pass the answer on. No failure here may end the server."""
    key = forms.question_key(worker, question)
    is_settled = False
    try:
        is_settled = await _answered_by_form(ctx, scope, worker, question)
    except Exception:  # noqa: BLE001
        is_settled = False  # The client cannot, is gone, or sent nonsense: the question goes to the waiting caller.
    finally:
        client.shown.discard(key)
        if not is_settled:
            client.unsettle(key)


async def _answered_by_form(ctx: Context, scope: Scope, worker: WorkerDir, question: Question) -> bool:
    """Show a form until it is filled in or its question no longer open; return whether the question is answered."""
    form = forms.form_of(worker, question)
    filled: list[types.ElicitResult] = []
    async with anyio.create_task_group() as group:

        async def withdraw() -> None:
            while await anyio.to_thread.run_sync(is_open, worker, question.id):  # noqa: ASYNC110 - other processes answer
                await anyio.sleep(_LOOK_S)
            group.cancel_scope.cancel()  # This tells the client to withdraw the form.

        group.start_soon(withdraw)
        filled.append(await ctx.session.elicit_form(form.message, form.schema))
        group.cancel_scope.cancel()
    if not filled:
        return True
    if filled[0].action != "accept":
        return False
    return await anyio.to_thread.run_sync(forms.answer_by_form, scope, worker, question, dict(filled[0].content or {}))


# -- protocols in which a server asks in its answer --------------------------------------------------------------------


async def continue_call(calls: McpCalls, ctx: Context, params: types.CallToolRequestParams) -> Any:
    """Continue a call whose user has filled in forms; return its answer."""
    token, session = params.request_state or "", calls.clients.of(ctx).toolbox.session

    def taken_up() -> WaitingCall:
        scope = session.at(handles.task_of(token))
        handle = handles.load(scope.task, token)
        if handle.call != call_digest(params):
            raise MCPError(types.INVALID_PARAMS, "this requestState belongs to another call")
        handle = take_answers(scope, handle, params.input_responses or {})
        return WaitingCall(scope, handle.pending, Teller(ctx), handle.call, handle)

    try:
        waiting = await anyio.to_thread.run_sync(taken_up)
    except AgentctlError as error:
        raise MCPError(types.INVALID_PARAMS, wrong_for_model(error)) from error
    return await finish(calls, ctx, waiting)


def take_answers(scope: Scope, handle: Handle, responses: Mapping[str, Any]) -> Handle:
    """Pass on the forms that were filled in; a question that was declined or answered wrongly is not asked again."""
    open_ones = forms.open_forms(scope, handle.pending)
    for key, filled in responses.items():
        reply = filled if isinstance(filled, Mapping) else filled.model_dump()
        if key not in open_ones:
            continue  # Answered elsewhere, or never asked.
        worker, question = open_ones[key]
        content = reply.get("content") or {}
        if reply.get("action") != "accept" or not forms.answer_by_form(scope, worker, question, content):
            handle = handles.declined(scope.task, handle, key)
    return handle


async def _by_answers(calls: McpCalls, ctx: Context, waiting: WaitingCall) -> Any:
    """Wait until all have ended, or for a question: then the answer is a form, and the client sends the call again."""
    scope, pending, deadline = waiting.scope, waiting.pending, _deadline(calls, ctx)
    to_the_end = calls.clients.of(ctx).toolbox.waits_through_questions(pending)
    asked: _Asked = frozenset()
    while True:
        sight = await _news(calls, ctx, waiting, asked, deadline)
        fresh = _blocked(sight or {}) - asked
        open_ones = await anyio.to_thread.run_sync(_open_questions, scope, pending)
        requests = requests_of(open_ones, waiting.handle.declined if waiting.handle is not None else ())
        if requests:
            handle = waiting.handle
            if handle is None:
                handle = await anyio.to_thread.run_sync(_kept, waiting)
            return types.InputRequiredResult(input_requests=requests, request_state=handle.token)
        if not fresh or (open_ones and not to_the_end):
            answer = as_result(await calls.wait(ctx, waiting, 0))
            if waiting.handle is not None:
                await anyio.to_thread.run_sync(handles.forget_call, scope.task, waiting.handle)
            return answer
        asked |= fresh


def _kept(waiting: WaitingCall) -> Handle:
    return handles.create(waiting.scope.task, waiting.pending, call=waiting.call)


def requests_of(
    open_ones: Mapping[str, tuple[WorkerDir, Question]], declined: tuple[str, ...]
) -> dict[str, types.InputRequest]:
    """Return open questions as requests to the client, under stable names, without those that it has declined."""
    found: dict[str, types.InputRequest] = {}
    for key, (worker, question) in open_ones.items():
        if key not in declined and not question.idle:
            form = forms.form_of(worker, question)
            params = types.ElicitRequestFormParams(message=form.message, requested_schema=form.schema)
            found[key] = types.ElicitRequest(params=params)
    return found
