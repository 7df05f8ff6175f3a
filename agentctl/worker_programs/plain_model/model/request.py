"""What a model is asked, in one form for all APIs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentctl.lean import NamedTuple


class ToolSpec(NamedTuple):
    """A tool as a model is told of it."""

    name: str
    description: str
    #: JSON schema of its arguments.
    schema: Mapping[str, Any]


class ModelRequest(NamedTuple):
    """A conversation to be continued."""

    model: str
    system: str
    #: Messages as the conversation's file has them: of the types user, assistant, result.
    records: Sequence[Mapping[str, Any]]
    tools: Sequence[ToolSpec] = ()
    effort: str | None = None
    #: The most tokens that may be answered.
    output: int | None = None
    #: The server wants the thoughts of its earlier answers back.
    keeps_thoughts: bool = False
