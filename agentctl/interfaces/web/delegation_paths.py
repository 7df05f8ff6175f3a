"""The paths of delegation, `POST /task` and `POST /task/parallel`, for programs that were written for FastAPI services.

They are the tools `task` and `task_parallel`, with the same arguments and answers.
"""

from __future__ import annotations

from typing import Any

from agentctl.adapters.taskdir import Root
from agentctl.errors import NotFound, Refused, UsageError
from agentctl.interfaces.web.endpoint import BODY, PATH, CheckedRequest, Endpoint, Input, JsonAnswer
from agentctl.operations.delegate.delegating import session_results
from agentctl.operations.where.locating import find_task
from agentctl.tools import delegation
from agentctl.tools.definition import Call, Tool
from agentctl.tools.scope import ScopeSource


def seed_endpoints(root: Root, *, force: bool) -> list[Endpoint]:
    """Return the endpoints; their paths are below none."""
    source = ScopeSource(None, str(root.path))

    def delegating(tool: Tool) -> Any:
        def carry_out(call: CheckedRequest) -> JsonAnswer:
            from agentctl.tools.registry import Toolbox  # All tools: most servers never need them.

            answer = Toolbox(source, "claude").call(tool.name, dict(call.values), Call(broken=call.broken))
            if isinstance(answer, dict) and "error" in answer and "status" not in answer:
                raise UsageError(str(answer["error"]), hint=answer.get("hint"))
            return JsonAnswer(answer)

        return carry_out

    def session(call: CheckedRequest) -> JsonAnswer:
        try:
            task = find_task(None, root=str(root.path), force=force)
        except (NotFound, Refused):
            return JsonAnswer([])
        return JsonAnswer([one.to_dict() for one in session_results(task, call.values["session_id"])])

    return [
        Endpoint("POST", "/task", "task", "Delegate work to a sub-agent, and wait for its result.",
                 delegating(delegation.TASK), _parameters(delegation.TASK), waits=True),
        Endpoint("POST", "/task/parallel", "task_parallel", "Delegate several pieces of work at the same time.",
                 delegating(delegation.TASK_PARALLEL), _parameters(delegation.TASK_PARALLEL), waits=True),
        Endpoint("GET", "/task/session/{session_id}", "task_session", "Return what was delegated in a session.",
                 session, (Input("session_id", {"type": "string", "pattern": "^[A-Za-z0-9_.:-]{1,200}$"},
                                     "The session.", PATH, is_required=True),)),
    ]  # fmt: skip


def _parameters(tool: Tool) -> tuple[Input, ...]:
    """Return the arguments of a tool as parameters of a body, those too that no agent is told of: `session_id`."""
    return tuple(
        Input(name, schema, str(schema.get("description", "")), BODY, name in tool.required)
        for name, schema in {**tool.properties, **tool.also}.items()
    )
