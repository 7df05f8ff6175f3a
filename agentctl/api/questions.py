"""A worker's question, as a program sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
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


def question_from(row: Mapping[str, Any]) -> Question:
    """Return the question in a row of `interact list --json`."""
    return Question(
        task_id=row["taskId"], agent_instance=row["agentInstance"], id=row["id"], kind=str(row.get("kind") or ""),
        text=str(row.get("question") or ""), options=row.get("options") or (), default=row.get("default"),
        tool=row.get("tool"), arguments=row.get("arguments"),
    )  # fmt: skip
