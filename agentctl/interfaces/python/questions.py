"""A worker's question, as a program sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentctl.domain.question import Question as DomainQuestion
from agentctl.operations.talk.interacting import OpenQuestion


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedQuestion:
    """An open question; `Task.respond` answers it, or what an executor's `on_question` returns."""

    task_id: str
    agent_instance: str
    id: str
    #: `select confirm input`
    kind: str
    text: str
    #: {id, label} each; if there are any, an answer is the id of one.
    options: Sequence[Mapping[str, Any]] = ()
    default: str | None = None
    #: Of a request for permission: what may be allowed. Within a worker only `deny` is sure to be accepted.
    tool: str | None = None
    arguments: Mapping[str, Any] | None = None
    #: All of it: an answer counts only for this.
    shown: DomainQuestion | None = field(default=None, repr=False, compare=False)


#: Under this name it is offered.
Question = AskedQuestion


def question_from(asked: OpenQuestion) -> AskedQuestion:
    """Return an open question as a program sees it."""
    one = asked.question
    return AskedQuestion(
        task_id=asked.task_id, agent_instance=asked.instance, id=one.id, kind=one.kind, text=one.text,
        options=[option._asdict() for option in one.options], default=one.default, tool=one.tool,
        arguments=one.arguments, shown=one,
    )  # fmt: skip
