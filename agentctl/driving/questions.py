"""What an agent program asks, as interactions on disk: put, answered from any terminal, closed when it ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentctl.adapters.files import read_quietly
from agentctl.adapters.taskdir import AgentDir
from agentctl.domain.permissions import decide
from agentctl.drivers.dialogue import Ask
from agentctl.drivers.order import Order
from agentctl.driving.room import when_there_is_room
from agentctl.lean import NamedTuple
from agentctl.operations.asking import Asked, close_question, leave, put_question

#: More than a person reads of a request's arguments.
_LONGEST_ARGUMENTS = 20_000
_LONGEST_QUESTION = 10_000


class Decided(NamedTuple):
    """The policy answers a permission. An action of its own: what led to the question stands before the answer."""

    key: str
    answer: str
    #: {answer, tool, askedBy}, as it is told and kept.
    policy: Mapping[str, Any]


def decided_by(order: Order, ask: Ask) -> Decided | None:
    """Return the policy's answer to a permission; None for what it leaves to a person."""
    answer = "ask" if ask.tool is None else decide(order.permissions, ask.tool, ask.arguments or {})
    if ask.tool is not None and any(decide(rules, ask.tool, ask.arguments) == "deny" for rules in order.denied_above):
        answer = "deny"
    if answer == "ask":
        return None
    policy = {"answer": answer, "tool": ask.tool, "askedBy": ask.asked_by}
    return Decided(ask.key, ask.allow if answer == "allow" else ask.deny, policy)


class OpenQuestions:
    """The questions that the program waits for, by its own keys."""

    def __init__(self, agent: AgentDir) -> None:
        self.agent = agent
        self._open: dict[str, tuple[Ask, Asked]] = {}

    def put(self, ask: Ask) -> None:
        """Put a question on disk; the worker is blocked from now on."""
        if ask.key not in self._open:
            body = _body(ask)
            self._open[ask.key] = (ask, when_there_is_room(lambda: put_question(self.agent, body, None)))

    def answered(self) -> Iterator[tuple[Ask, str]]:
        """Yield what has been answered since, and let go of it."""
        for key, (ask, asked) in list(self._open.items()):
            answer = read_quietly(self.agent.answer(asked.question_id))
            if answer:
                del self._open[key]
                leave(self.agent, asked)
                if not answer.get("expired"):
                    yield ask, str(answer.get("answer"))

    def close(self, key: str, why: str) -> None:
        """Close a question that nobody needs an answer to."""
        ask, asked = self._open.pop(key, (None, None))
        if ask is not None and asked is not None:
            name = asked.question_id
            when_there_is_room(lambda: close_question(self.agent, name, None, why))
            leave(self.agent, asked)

    def close_all(self, why: str) -> None:
        """Close what is open."""
        for key in list(self._open):
            self.close(key, why)


def _body(ask: Ask) -> dict[str, Any]:
    body: dict[str, Any] = {
        "kind": "select" if ask.options else "input",
        "question": ask.question[:_LONGEST_QUESTION] or "(an empty question)",
        "options": [{"id": key, "label": label} for key, label in ask.options],
        "default": None,
        "deadlineSeconds": None,
    }
    more = {
        "tool": ask.tool,
        "arguments": _bounded(ask.arguments) if ask.arguments is not None else None,
        "askedBy": ask.asked_by,
        "askedByType": ask.asked_by_type,
        "multiple": ask.multiple or None,
        "other": ask.other or None,
    }
    return body | {key: value for key, value in more.items() if value is not None}


def _bounded(arguments: Any) -> Any:
    """Return the arguments, with what is longer than anybody reads cut; the raw output has the whole."""
    import json

    if len(json.dumps(arguments)) <= _LONGEST_ARGUMENTS:
        return arguments
    if isinstance(arguments, dict):
        share = _LONGEST_ARGUMENTS // max(1, len(arguments))
        cut = {str(key): _cut(value, share) for key, value in arguments.items()}
        if len(json.dumps(cut)) <= 2 * _LONGEST_ARGUMENTS:
            return cut
    return _cut(arguments, _LONGEST_ARGUMENTS)  # Too many keys, or too long ones.


def _cut(value: Any, limit: int) -> Any:
    import json

    text = value if isinstance(value, str) else json.dumps(value)
    return value if len(text) <= limit else f"{text[:limit]} [cut: {len(text)} characters]"
