"""The questions of workers as MCP's forms, and what comes back as their answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentctl.adapters.taskdir import AgentDir
from agentctl.errors import AgentctlError
from agentctl.operations.interacting import respond
from agentctl.tools.definition import Pending
from agentctl.tools.place import Place
from agentctl.tools.results import question_of

FIELD = "answer"
_LONGEST_ARGUMENTS = 2000


def key_of(agent: AgentDir, question: Mapping[str, Any]) -> str:
    """Return the name of a question: no other one of the same call has it."""
    return f"{agent.task.id}.{agent.instance}.{question['id']}"


def open_forms(place: Place, pending: Pending) -> dict[str, tuple[AgentDir, dict[str, Any]]]:
    """Return the questions that the workers of a call wait with, by name; what is merely idle asks nothing."""
    found = {}
    for key in pending.keys:
        agent = place.agent_of(key)
        question = None if agent.has_ended else question_of(agent)
        if question is not None and not question.get("idle"):
            found[key_of(agent, question)] = (agent, question)
    return found


def message_of(agent: AgentDir, question: Mapping[str, Any]) -> str:
    """Return what the user reads."""
    told = f"{agent.instance} asks: {question['question']}"
    arguments = str(question.get("arguments") or "")[:_LONGEST_ARGUMENTS]
    return f"{told}\n{question.get('tool', '')} {arguments}".rstrip() if arguments else told


def schema_of(question: Mapping[str, Any]) -> dict[str, Any]:
    """Return the form: one field."""
    kind, options = question.get("kind"), question.get("options") or []
    field: dict[str, Any] = {"type": "string", "title": "Answer"}
    if kind == "confirm":
        field = {"type": "boolean", "title": "Yes?"}
    elif options:
        field |= {"enum": [str(one["id"]) for one in options], "enumNames": [str(one["label"]) for one in options]}
    return {"type": "object", "properties": {FIELD: field}, "required": [FIELD]}


def answer(place: Place, agent: AgentDir, question_id: str, content: Mapping[str, Any]) -> None:
    """Pass a filled form on; where somebody else has answered meanwhile, that answer stands."""
    value = content.get(FIELD)
    said = ("yes" if value else "no") if isinstance(value, bool) else str(value)
    try:
        respond(place.task.root, task=agent.task, instance=agent.instance, question_id=question_id, answer=said)
    except AgentctlError:
        pass  # The question, if it is still open, is as it was.
