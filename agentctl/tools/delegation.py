"""The tools `task` and `task_parallel`, which answer when the work has ended."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agentctl.domain.names import WorkerId
from agentctl.errors import AgentctlError
from agentctl.operations.delegate.delegating import (
    DEFAULT_AGENT,
    DEFAULT_SESSION,
    DEFAULT_TIMEOUT_S,
    Delegated,
    Terms,
    delegate,
    delegated_result,
)
from agentctl.operations.delegate.resuming import resume_worker
from agentctl.operations.trust.definitions import find_agent_spec
from agentctl.tools.arguments import call_arguments
from agentctl.tools.awaited_worker import Target
from agentctl.tools.definition import Arguments, Call, Ends, Pending, Tool, either, flag, number, some_text, text
from agentctl.tools.descriptions import agent_types, bounds, short
from agentctl.tools.foreign_arguments import OTHERS, adapted, not_honoured
from agentctl.tools.hints import hint_of, wrong_for_model
from agentctl.tools.results import share_of
from agentctl.tools.scope import Scope
from agentctl.tools.start_arguments import KEY, MODEL, START_ARGUMENTS, start_fields

_MOST_AT_ONCE = 1000
#: The tools that a caller of these always has besides them.
AT_HAND = frozenset({"wait", "send_input", "close_agent"})

_ITEM: dict[str, Mapping[str, Any]] = {
    "objective": some_text("What the sub-agent should accomplish. It sees nothing of this conversation."),
    "subagent_type": text(f"Which agent; default: {DEFAULT_AGENT}."),
    "description": text("A label of a few words, from which its name is made."),
    "context": either("What it needs to know: text, or a JSON object.", {"type": "string"}, {"type": "object"}),
    **MODEL,
}
_TERMS: dict[str, Mapping[str, Any]] = {
    "timeout_seconds": number(
        f"How long it may work, not counting the queue and open questions; default: {DEFAULT_TIMEOUT_S:g}.",
        low=0.001, high=31_536_000,
    ),
}  # fmt: skip
_SESSION = {"session_id": text("The session in which a program finds them again, with `get_session_tasks` in Python.")}
_OTHERS = {
    **{name: schema for name, schema in OTHERS.items() if name != "description"},
    "name": text("Its name, to which messages are sent."),
    **KEY,
}
_SYNONYMS = {
    "prompt": "objective", "instruction": "objective", "message": "objective", "agent_type": "subagent_type",
    "title": "description", "reasoning_effort": "effort", "timeout": "timeout_seconds",
}  # fmt: skip
#: The names of the objective. If none is given, the label is the objective.
_WORK = frozenset({"objective", "prompt", "instruction", "message"})


def _adapted(given: Arguments) -> Arguments:
    found = adapted("objective")(given)
    if not _WORK & set(found) and isinstance(found.get("description"), str):
        found["objective"] = found.pop("description")
    return found


def _task(scope: Scope, given: Arguments, _call: Call) -> Any:
    if "resume" in given:
        return _resumed(scope, given)
    item = {key: value for key, value in given.items() if key in {*_ITEM, *START_ARGUMENTS, "name", *KEY}}
    begun = _delegate(scope, TASK.name, [item], given)
    if not given.get("run_in_background") or not isinstance(begun, Pending):
        return begun
    name = begun.targets[0].id
    warnings = begun.given.get("warnings")
    return {"id": name, "status": "queued", "task_id": name} | ({"warnings": warnings} if warnings else {})


def _resumed(scope: Scope, given: Arguments) -> Any:
    """Continue an ended agent with what it is to do now."""
    worker, name = scope.find(given["resume"]), given["resume"]
    started = resume_worker(
        worker.task, worker.instance, given["objective"], queue=True, by_tool=True, key=given.get("key")
    )
    target = Target(id=name, key=WorkerId(worker.task.id, started.agent_instance))
    scope.note(target)
    if given.get("run_in_background"):
        return {"id": name, "status": started.status, "task_id": name}
    return Pending(tool=TASK.name, targets=(target,), given={"rows": [name]})


def _task_parallel(scope: Scope, given: Arguments, _call: Call) -> Any:
    return _delegate(scope, TASK_PARALLEL.name, given["tasks"], given)


def _delegate(scope: Scope, tool: str, items: Sequence[Any], given: Arguments) -> Any:
    terms = Terms(
        session_id=given.get("session_id", DEFAULT_SESSION),
        timeout_seconds=given.get("timeout_seconds", DEFAULT_TIMEOUT_S),
        cwd=scope.folder,
        by_tool=True,
    )
    requests = [_request_of(scope, item, f"tasks[{index}]" if tool == TASK_PARALLEL.name else tool)
                for index, item in enumerate(items)]  # fmt: skip
    fresh = iter(delegate(scope.task, [one for one in requests if isinstance(one, dict)], terms, worded=_worded))
    done = [next(fresh) if isinstance(one, dict) else one for one in requests]
    names = [one.instance for one in done if one.instance is not None]
    targets = tuple(Target(id=name, key=WorkerId(scope.task.id, name)) for name in names)
    scope.note(*targets)
    rows = [one.instance or one.refusal().to_json() for one in done]
    calls = [item for item in (given, *items) if isinstance(item, Mapping)]
    warnings = sorted({warning for call in calls for warning in not_honoured(call)})
    pending = Pending(tool=tool, targets=targets, given={"rows": rows, "warnings": warnings})
    return pending if targets else _results(scope, pending)


def _worded(error: AgentctlError) -> tuple[str, str | None]:
    return wrong_for_model(error), hint_of(error, AT_HAND)


def _request_of(scope: Scope, item: Any, where: str) -> Arguments | Delegated:
    """Return an item in the form that `delegate` takes, or the result of an item that cannot be started. A model may
    not give a command (`argv`): it would run outside the model's own sandbox.
    """
    raw = item if isinstance(item, Mapping) else {}
    kind = str(raw.get("subagent_type") or raw.get("agent_type") or DEFAULT_AGENT)
    try:
        found = call_arguments(_ITEM_TOOL, item, where)
        spec = find_agent_spec(scope.task.root, found.get("subagent_type", DEFAULT_AGENT))
        agent_options = start_fields(scope, spec, found)
    except AgentctlError as error:
        hint = hint_of(error, AT_HAND)
        why = f"{wrong_for_model(error)} ({hint})" if hint else wrong_for_model(error)
        return Delegated(objective=str(raw.get("objective") or ""), agent_type=kind, error=why)
    line: Arguments = {
        "objective": found["objective"],
        "subagent_type": spec.name,
        "context": _context(found),
        **agent_options,
    }
    more = {"label": found.get("description"), **{name: found.get(name) for name in ("name", "worktree", *KEY)}}
    return line | {key: value for key, value in more.items() if value}


def _context(given: Arguments) -> Any:
    """Return the context for an agent; a text that is a JSON object is parsed."""
    context = given.get("context")
    if isinstance(context, str) and context.lstrip().startswith("{"):
        try:
            found = json.loads(context)
        except (ValueError, RecursionError):
            return context
        return found if isinstance(found, dict) else context
    return context


def _results(scope: Scope, pending: Pending) -> Any:
    rows: list[Any] = list(pending.given["rows"])
    share, warnings = share_of(len(rows)), pending.given.get("warnings")
    results = [_one(scope, pending, row, share) for row in rows]
    answer = results[0] if pending.tool == TASK.name else {"results": results}
    return answer | ({"warnings": warnings} if warnings else {})


def _one(scope: Scope, pending: Pending, row: Any, max_bytes: int) -> Any:
    """Return a result, with its objective and error cut."""
    result = row
    if isinstance(row, str):
        key = next(target.key for target in pending.targets if target.id == row)
        result = delegated_result(scope.agent_of(key), max_bytes=max_bytes).to_json() | {"task_id": row}
    bounded = {key: short(result[key]) for key in ("objective", "error") if result.get(key)}
    return {**result, **bounded}


#: An item of `task_parallel`, and the work of `task`.
_ITEM_TOOL = Tool(
    name="item",
    describe=lambda _situation: "",
    properties={**_ITEM, **START_ARGUMENTS},
    required=("objective",),
    also=_OTHERS,
    synonyms=_SYNONYMS,
    adapt=_adapted,
    run=lambda _scope, given, _call: given,
)
_ITEM_SCHEMA = {"type": "object", "properties": _ITEM, "required": ["objective"]}

TASK = Tool(
    name="task",
    describe=lambda situation: (
        "Delegate a task to a sub-agent; returns its result when it has ended. For several at once use task_parallel."
        f" {bounds(situation)}\n{agent_types(situation)}"
    ),
    properties={
        **_ITEM,
        **START_ARGUMENTS,
        "run_in_background": flag("true: answer at once with its id, to wait for it later; default: false."),
        "resume": text("An ended agent, to continue from its own history."),
        **_TERMS,
    },
    required=("objective",),
    also={**_OTHERS, **_SESSION},
    synonyms=_SYNONYMS,
    other_names=("Task", "Agent"),
    adapt=_adapted,
    run=_task,
    answers="DelegatedTask | StartedAgent | AgentsAtWork",
    ends=Ends(_results),
    spawns=True,
)

TASK_PARALLEL = Tool(
    name="task_parallel",
    describe=lambda situation: (
        "Delegate several independent tasks to sub-agents that work in parallel; returns one result each, in the same"
        f" order, when all have ended. {bounds(situation)}\n{agent_types(situation)}"
    ),
    properties={
        "tasks": {
            "type": "array",
            "description": f"At most {_MOST_AT_ONCE}; each can also have effort, max_turns, driver, permissions and"
            " worktree, as in task.",
            "items": _ITEM_SCHEMA,
            "minItems": 1,
            "maxItems": _MOST_AT_ONCE,
        },
        **_TERMS,
    },
    required=("tasks",),
    also=_SESSION,
    synonyms={"timeout": "timeout_seconds"},
    own_items=frozenset({"tasks"}),
    run=_task_parallel,
    answers="DelegatedTasks | AgentsAtWork",
    ends=Ends(_results),
    spawns=True,
)
