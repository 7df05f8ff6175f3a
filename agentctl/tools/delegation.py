"""`task`, `task_parallel`, `create_subtask_<agent>`: work that answers once it has ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentctl.errors import UsageError
from agentctl.operations.agents import Agent
from agentctl.operations.delegating import (
    DEFAULT_AGENT,
    DEFAULT_SESSION,
    DEFAULT_TIMEOUT_S,
    Delegated,
    Terms,
    delegate,
    result_of,
)
from agentctl.operations.gathering import Key
from agentctl.operations.subtasks import Subtask, SubtaskRequest, begin_subtask, end_of, end_with_caller, find_subtask
from agentctl.supervision.tickets import HIGHEST, LOWEST
from agentctl.tools.agents import driver_for
from agentctl.tools.arguments import check
from agentctl.tools.definition import Arguments, Call, Ends, Pending, Target, Tool, number, text
from agentctl.tools.place import Place, Situation
from agentctl.tools.results import share_of
from agentctl.tools.words import agent_types, limits, short

#: The longest name of a tool that models' providers take, with what a client puts before it.
_LONGEST_NAME, _BEFORE = 64, "mcp__agentctl__"
_MOST_AT_ONCE = 1000

_ITEM: dict[str, dict[str, Any]] = {
    "objective": text("What the sub-agent is to accomplish. It sees nothing of this conversation.", minLength=1),
    "subagent_type": text(f"Which agent; `{DEFAULT_AGENT}` without it."),
    "context": {"type": "object", "description": "What it needs to know, as any JSON object."},
}
_TERMS: dict[str, dict[str, Any]] = {
    "timeout_seconds": number(f"How long it may work; {DEFAULT_TIMEOUT_S:g} without it.", low=0.001, high=31_536_000),
    "session_id": text("Groups the tasks of a session."),
}
_SYNONYMS = {"prompt": "objective", "description": "objective", "agent_type": "subagent_type"}
_ITEM_SCHEMA = {"type": "object", "properties": _ITEM, "required": ["objective"]}


def _task(place: Place, given: Arguments, _call: Call) -> Any:
    item = {key: given[key] for key in _ITEM if key in given}
    return _delegate(place, TASK.name, [item], given)


def _task_parallel(place: Place, given: Arguments, _call: Call) -> Any:
    return _delegate(place, TASK_PARALLEL.name, given["tasks"], given)


def _delegate(place: Place, tool: str, items: Sequence[Any], given: Arguments) -> Any:
    terms = Terms(
        session_id=given.get("session_id", DEFAULT_SESSION),
        timeout_seconds=given.get("timeout_seconds", DEFAULT_TIMEOUT_S),
        cwd=place.folder,
    )
    refused = {index: one for index, item in enumerate(items) if (one := _refusal(item, index)) is not None}
    started = delegate(place.task, [item for index, item in enumerate(items) if index not in refused], terms)
    fresh = iter(started)
    done = [refused[index] if index in refused else next(fresh) for index in range(len(items))]
    names = [one.instance for one in done if one.instance is not None]
    targets = tuple(Target(id=name, key=Key(place.task.id, name)) for name in names)
    rows = [one.instance or one.refusal().to_json() for one in done]
    pending = Pending(tool=tool, targets=targets, given={"rows": rows})
    return pending if targets else _results(place, pending)


def _refusal(item: Any, index: int) -> Delegated | None:
    """Return the result of an item that cannot be meant. A command (`argv`) is none of a model's: it would run it
    outside of its own sandbox.
    """
    try:
        check(item, _ITEM_SCHEMA, f"tasks[{index}]")
    except UsageError as error:
        told = item if isinstance(item, Mapping) else {}
        objective, agent = told.get("objective"), told.get("subagent_type")
        return Delegated(objective=str(objective or ""), agent_type=str(agent or DEFAULT_AGENT), error=error.message)
    return None


def _results(place: Place, pending: Pending) -> Any:
    rows: list[Any] = list(pending.given["rows"])
    share = share_of(len(rows))
    told = [_one(place, row, share) for row in rows]
    return told[0] if pending.tool == TASK.name else {"results": told}


def _one(place: Place, row: Any, max_bytes: int) -> Any:
    """Return a result; of its objective only as much as the caller needs to know its own words again."""
    told = result_of(place.task.agent(row), max_bytes=max_bytes).to_json() if isinstance(row, str) else row
    bounded = {key: short(told[key]) for key in ("objective", "error") if told.get(key)}
    return {**told, **bounded}


TASK = Tool(
    name="task",
    describe=lambda situation: (
        "Delegate a task to a sub-agent, and get its result. For several at once use task_parallel."
        f" {limits(situation)}\n{agent_types(situation)}"
    ),
    properties={**_ITEM, **_TERMS},
    required=("objective",),
    synonyms=_SYNONYMS,
    run=_task,
    ends=Ends(_results),
    spawns=True,
)

TASK_PARALLEL = Tool(
    name="task_parallel",
    describe=lambda situation: (
        "Delegate several independent tasks to sub-agents that work in parallel; one result each, in this order."
        f" {limits(situation)}\n{agent_types(situation)}"
    ),
    properties={
        "tasks": {
            "type": "array",
            "description": "{objective, subagent_type?, context?} of each.",
            "items": _ITEM_SCHEMA,
            "minItems": 1,
            "maxItems": _MOST_AT_ONCE,
        },
        **_TERMS,
    },
    required=("tasks",),
    own_items=frozenset({"tasks"}),
    run=_task_parallel,
    ends=Ends(_results),
    spawns=True,
)


# -- sub-tasks ---------------------------------------------------------------------------------------------------------

SUBTASK_PREFIX = "create_subtask_"


def subtask_tools(situation: Situation) -> list[Tool]:
    """Return a tool for each agent whose name fits into the name of one."""
    found = [_subtask_tool(agent) for agent in situation.agents]
    return [tool for tool in found if len(_BEFORE + tool.name) <= _LONGEST_NAME]


def _subtask_tool(agent: Agent) -> Tool:
    name = agent.spec.name

    def run(place: Place, given: Arguments, _call: Call) -> Any:
        driver = driver_for(place, name)
        subtask = begin_subtask(
            place.task,
            SubtaskRequest(
                agent=name, title=given["title"], intent=given.get("intent"), priority=given.get("priority", 0),
                artifacts=given.get("artifactRefs", ()), cwd=place.folder, wishes={"driver": driver} if driver else {},
            ),
        )  # fmt: skip
        key = Key(subtask.task.id, subtask.spawned.agent_instance)
        return Pending(tool=f"{SUBTASK_PREFIX}{name}", targets=(Target(id=subtask.task.id, key=key),))

    return Tool(
        name=f"{SUBTASK_PREFIX}{name}",
        describe=lambda situation: (
            f"Give a task of its own to the agent {name} and wait, through its questions, for the end."
            f" {' '.join(agent.spec.description.split())} {limits(situation)}"
        ),
        properties={
            "title": text("What it is about, in a few words.", minLength=1),
            "intent": text("What the agent is to do. It sees nothing of this conversation."),
            "artifactRefs": {
                "type": "array",
                "items": text("A path, or `task/instance/file`."),
                "description": "Files that it is to work with.",
            },
            "priority": number("Of those in the queue the highest starts first.", low=LOWEST, high=HIGHEST, whole=True),
        },
        required=("title",),
        run=run,
        ends=SUBTASK_ENDS,
        spawns=True,
    )


def _subtask_end(place: Place, pending: Pending) -> Any:
    return end_of(_subtask_of(place, pending)).to_json()


def _subtask_cancelled(place: Place, pending: Pending) -> Any:
    end = end_with_caller(_subtask_of(place, pending))
    return None if end is None else end.to_json()


def _subtask_of(place: Place, pending: Pending) -> Subtask:
    return find_subtask(place.task.sibling(pending.targets[0].key.task_id))


SUBTASK_ENDS = Ends(_subtask_end, _subtask_cancelled)
