"""The rows of `activity.jsonl`, one JSON object a line: messages, thoughts, tool calls, sub-agents, usage.

Rows of one id are about one thing: a tool call has a row when it starts, and one when it ends. A row may come late or
twice; the fold over the rows (`fold.py`) gives the same view. An end is final: what begins again has a new id.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from agentctl.domain.text.plaintext import beginning
from agentctl.lean import NamedTuple

#: The prefix of row ids that a worker's own `report` writes; no driver's output has it.
REPORTED = "report-"
#: A row has at most this many characters of an agent's own message; no model says more at once.
LONGEST_MESSAGE = 500_000
#: Of the arguments of a sub-agent, what it is to do.
PROMPT = "prompt"
#: What may be known of a call before its arguments: how its program names it, and where it acts.
_AROUND = frozenset({"title", "paths", "cwd"})
#: How the call of a tool can end.
CALL_ENDS = frozenset({"completed", "failed", "denied", "cancelled"})


class RowType(StrEnum):
    """What a row is about."""

    #: Text from an agent, or to it (`name` is then `user`).
    MESSAGE = "message"
    THOUGHT = "thought"
    TOOL = "tool"
    #: A sub-agent; what it does are rows whose parent is its id.
    AGENT = "agent"
    #: Tokens; `detail` has input, output, cached. Rows of one id report the same consumption.
    USAGE = "usage"
    #: A question or a request for permission.
    QUESTION = "question"
    #: A remark of the driver: a retry, a warning, something that it does not know.
    NOTE = "note"
    #: `report progress` of the worker.
    PROGRESS = "progress"


class Phase(StrEnum):
    """How far the thing that a row is about has come."""

    START = "start"
    PROGRESS = "progress"
    END = "end"


class Row(NamedTuple):
    """One row. `parent` is the id of the sub-agent that did it; None means the worker itself."""

    type: RowType
    id: str
    phase: Phase = Phase.END
    parent: str | None = None
    #: Of a tool call, a sub-agent or a question: running completed failed cancelled denied answered.
    status: str | None = None
    agent_type: str | None = None
    #: The tool, or in a few words what the sub-agent is to do.
    name: str | None = None
    text: str | None = None
    #: The arguments of a tool call, the prompt and the further ones of a sub-agent, the tokens of a usage row.
    detail: Mapping[str, Any] | None = None

    def to_json(self, at: str) -> dict[str, Any]:
        """Return the row as the file has it, with the time at which it was seen."""
        value = {
            "at": at,
            "type": self.type,
            "id": self.id,
            "phase": self.phase,
            "parent": self.parent,
            "status": self.status,
            "agentType": self.agent_type,
            "name": self.name,
            "text": self.text,
            "detail": self.detail,
        }
        return {key: item for key, item in value.items() if item is not None}


def are_arguments_told(detail: object) -> bool:
    """Return whether the detail of a row tells with which arguments something was called.

    Where one has, what its end has besides is of the end, as the exit code of a command.

    >>> are_arguments_told({"command": "make"}), are_arguments_told({"title": "Edit", "query": ""})
    (True, False)
    """
    return isinstance(detail, Mapping) and any(value for key, value in detail.items() if key not in _AROUND)


def message_text(text: str) -> str:
    """Return an agent's message as its row has it: whole, unless it is longer than any model writes."""
    return beginning(text, LONGEST_MESSAGE)


def encode_row(row: Row, at: str) -> bytes:
    """Return the line of a row."""
    return json.dumps(row.to_json(at), separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace") + b"\n"
