"""Errors as a model reads them: with the next step by the tools that it has, and never a command line."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from agentctl.errors import AgentctlError, Limited, Next
from agentctl.operations.where.lineage import true_caller
from agentctl.tools.descriptions import short

#: step -> (the tool that it takes, or none; its words). The first whose tool there is says it.
_WORDS: dict[str, tuple[tuple[str, str], ...]] = {
    "another name": (
        ("spawn_agent", "choose another `id`: a name is taken for good"),
        ("", "choose another name: each is taken for good"),
    ),
    "another folder": (("spawn_agent", "`working_dir` names another"),),
    "another driver": (("", "choose another `driver`"),),
    "look around": (("list_agents", "list_agents shows them"), ("wait", "wait without ids tells of those that work")),
    "look at questions": (("wait", "wait shows what is asked by now"),),
    "read result": (("wait", "wait for {} has its result"),),
    "send": (("send_input", "send_input to {}"),),
    "trust": (("", "ask the user to look at {} and to trust it; or take another agent"),),
    "ask a person": (("", "a person answers it, in a terminal of their own: tell them"),),
    "deny": (("", "a person answers it, in a terminal of their own: tell them; or deny it, and do without"),),
}
_OF_USER = "it is a limit that the user has set: tell them, and do without"
#: What a model cannot take: a command of ours, an option of one.
_COMMAND_LINE = re.compile(r"\bagentctl [a-z-]+|(?<![\w-])--[a-z]")


def error_result(error: Exception, tools: Collection[str] = ()) -> dict[str, Any]:
    """Return an error as a result: short, for it may quote what a model has sent at any length.

    Args:
        tools: The names of those that the caller has.
    """
    message = error.message if isinstance(error, AgentctlError) else str(error)
    hint = hint_of(error, tools) if isinstance(error, AgentctlError) else None
    return {"error": short(message)} | ({"hint": short(hint)} if hint else {})


def hint_of(error: AgentctlError, tools: Collection[str]) -> str | None:
    """Return the next step for a caller with these tools; None if there is none."""
    if error.next is not None:
        return _said(error.next, tools)
    if isinstance(error, Limited) and true_caller() is None:
        return _OF_USER
    parts = [part for part in (error.hint or "").split("; ") if part and not _COMMAND_LINE.search(part)]
    return "; ".join(parts).removeprefix("or ") or None


def _said(step: Next, tools: Collection[str]) -> str | None:
    words = (said for tool, said in _WORDS[step.step] if not tool or tool in tools)
    return next((said.format(step.of) for said in words), None)
