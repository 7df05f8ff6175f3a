"""The tools `create_subtask_<agent>`: give an agent a task of its own, and answer when it has ended."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from agentctl.domain.names import WorkerId, first_of
from agentctl.errors import AgentctlError, NotFound, WaitStopped
from agentctl.operations.delegate.subtasks import (
    Subtask,
    SubtaskRequest,
    begin_subtask,
    end_with_caller,
    find_subtask,
    subtask_end,
)
from agentctl.operations.show.subtask_answer import ERROR, SubtaskEnd, refusal
from agentctl.operations.trust.definitions import Agent
from agentctl.supervision.queue.tickets import HIGHEST, LOWEST
from agentctl.tools.awaited_worker import Target
from agentctl.tools.definition import Arguments, Call, Ends, Pending, Tool, number, some_text, text
from agentctl.tools.delegation import AT_HAND
from agentctl.tools.descriptions import short
from agentctl.tools.hints import hint_of
from agentctl.tools.scope import Scope, Situation
from agentctl.tools.start_arguments import KEY, MODEL, START_ARGUMENTS, start_fields

#: The longest tool name that model providers accept, and the prefix that a client adds to it.
_LONGEST_NAME, _BEFORE = 64, "mcp__agentctl__"

SUBTASK_PREFIX = "create_subtask_"
SUBTASK_ANSWERS = "HintedSubtask | RunningSubtask | AgentsAtWork"
_ROOM = _LONGEST_NAME - len(_BEFORE + SUBTASK_PREFIX)
_DIGITS = 6


def subtask_tools(situation: Situation) -> list[Tool]:
    """Return a tool for each agent."""
    return [_subtask_tool(agent) for agent in situation.agents]


def subtask_tool(situation: Situation, name: str) -> Tool:
    """Return the tool of an agent, by the tool's name or by its prefix and the agent's full name.

    Raises:
        NotFound: There is no such agent; the hint names those that exist.
    """
    wanted = name.removeprefix(SUBTASK_PREFIX)
    for agent in situation.agents:
        if wanted in (agent.spec.name, tool_name(agent.spec.name).removeprefix(SUBTASK_PREFIX)):
            return _subtask_tool(agent)
    known = first_of(sorted(agent.spec.name for agent in situation.agents), 30)
    raise NotFound(f"Unknown agent type: {wanted}", hint=f"known: {known}")


def tool_name(agent: str) -> str:
    """Return the name of an agent's tool; a long one is cut, and made unique by digits.

    >>> tool_name("explore"), len(tool_name("x" * 64))
    ('create_subtask_explore', 49)
    """
    if len(agent) > _ROOM:
        agent = f"{agent[: _ROOM - _DIGITS - 1]}_{hashlib.sha256(agent.encode()).hexdigest()[:_DIGITS]}"
    return f"{SUBTASK_PREFIX}{agent}"


_OF_SUBTASKS: dict[str, Mapping[str, Any]] = {
    "title": some_text("What it is about, in a few words."),
    "intent": text("What the agent should do. It sees nothing of this conversation."),
    "artifactRefs": {
        "type": "array",
        "items": text("A path, or TASKID/NAME/FILE for a file that an agent has left."),
        "description": "Files to work with.",
    },
    "priority": number(
        f"The highest in the queue starts first: {LOWEST} to {HIGHEST}; default: 0.",
        low=LOWEST,
        high=HIGHEST,
        whole=True,
    ),
}


def _subtask_tool(agent: Agent) -> Tool:
    spec = agent.spec

    def run(scope: Scope, given: Arguments, _call: Call) -> Any:
        try:
            request = SubtaskRequest(
                agent=spec.name, title=given["title"], intent=given.get("intent"), priority=given.get("priority", 0),
                artifacts=given.get("artifactRefs", ()), callers_cwd=scope.folder, by_tool=True,
                agent_options=start_fields(scope, spec, given), key=given.get("key"),
            )  # fmt: skip
            subtask = begin_subtask(scope.task, request)
        except WaitStopped:
            raise
        except AgentctlError as error:
            return _answer_of(refusal(error)) | _hinted(error)
        key = WorkerId(subtask.task.id, subtask.spawned.agent_instance)
        return Pending(tool=tool_name(spec.name), targets=(Target(id=subtask.task.id, key=key),))

    return Tool(
        name=tool_name(spec.name),
        describe=lambda situation: (
            f"Give the agent {spec.name} a task of its own and wait{_until(situation)}."
            f" {' '.join(spec.description.split())}"
        ),
        properties=_OF_SUBTASKS,
        required=("title",),
        also={**MODEL, **{name: schema for name, schema in START_ARGUMENTS.items() if name != "worktree"}, **KEY},
        synonyms={"description": "title", "prompt": "intent", "objective": "intent", "instruction": "intent"},
        run=run,
        answers=SUBTASK_ANSWERS,
        ends=SUBTASK_ENDS,
        spawns=True,
    )  # fmt: skip


def _until(situation: Situation) -> str:
    to_the_end = ", through its questions, until it has ended"
    return to_the_end if situation.subtasks_to_the_end else " until it has ended, or asks"


def _hinted(error: AgentctlError) -> dict[str, str]:
    hint = hint_of(error, AT_HAND)
    return {"hint": short(hint)} if hint else {}


def _answer_of(end: SubtaskEnd) -> dict[str, Any]:
    """Return the answer of a sub-task. `agentId` begins with the task's id: each sub-task may have a general-1."""
    answer: dict[str, Any] = {**end.to_json()}
    if answer["taskId"] is not None and answer["agentId"] is not None:
        answer["agentId"] = f"{answer['taskId']}/{answer['agentId']}"
    if answer.get("subTaskStatus") == ERROR:
        answer["failureReason"] = short(str(answer["failureReason"]))
    return answer


def _subtask_end(scope: Scope, pending: Pending) -> Any:
    return _answer_of(subtask_end(_subtask_of(scope, pending)))


def _subtask_cancelled(scope: Scope, pending: Pending) -> Any:
    end = end_with_caller(_subtask_of(scope, pending))
    return None if end is None else _answer_of(end)


def _subtask_of(scope: Scope, pending: Pending) -> Subtask:
    return find_subtask(scope.task.sibling(pending.targets[0].key.task_id))


SUBTASK_ENDS = Ends(_subtask_end, _subtask_cancelled)
