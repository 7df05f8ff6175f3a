"""Errors for models: the hint names a tool that the model has, and never a command line."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from agentctl.errors import AgentctlError, Argument, AtTerminal, Limited, Next, WithArguments, steps_in_words, steps_of
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.where.lineage import true_caller
from agentctl.tools.descriptions import short
from agentctl.world_errors import error_in_words, next_step

if TYPE_CHECKING:
    from agentctl.errors import Step

#: Step -> (the tool that it needs, or none; the hint). The first one whose tool the caller has is used.
_WORDS: dict[str, tuple[tuple[str, str], ...]] = {
    "another name": (
        ("spawn_agent", "choose another `id`: a name cannot be used again"),
        ("", "choose another name: none can be used again"),
    ),
    "another key": (("", "choose another `key`; {} is what this one did"),),
    "another key for a task": (("", "choose another `key`; {} is what this one made"),),
    "another folder": (("spawn_agent", "choose another `working_dir`"),),
    "another driver": (("", "choose another `driver`"),),
    "look around": (("list_agents", "list_agents shows them"), ("wait", "wait without ids names those at work")),
    "look at questions": (("wait", "wait shows the open questions"),),
    "read result": (("wait", "wait for {} returns its result"),),
    "send": (("send_input", "send_input to {}"),),
    "trust": (("", "ask the user to look at {} and to trust it; or use another agent"),),
    "take over": (),
    "vouch": (),
    "ask a person": (("", "a person answers it, in their own terminal: tell them"),),
    "deny": (("", "a person answers it, in their own terminal: tell them; or deny it, and do without"),),
    "cancel": (("close_agent", "close_agent {}"),),
    "retry": (("spawn_agent", "spawn_agent with another `id`"),),
    "resume": (("resume_agent", "resume_agent {}"), ("send_input", "send_input to {}")),
    "wait": (("wait", "wait for {}"),),
    "show": (("list_agents", "list_agents shows {}"),),
    "list": (("list_agents", "list_agents"),),
    "spawn": (("spawn_agent", "spawn_agent"),),
    "name a model": (("spawn_agent", "choose another `model`, such as {}"),),
    "spawn an agent": (("spawn_agent", "spawn_agent with a prompt"),),
    "subtask": (("task", "task for {}"),),
    "retry all": (("spawn_agent", "spawn_agent with other `id`s, for these in turn: {}"),),
    "a person resumes": (("", "a person has it made again: tell them that {} needs it"),),
    "wait for any": (("wait", "wait without ids"),),
    "unpause": (("", "only who paused {} lets it go on: tell the user"),),
    "let the queue go": (("", "only who holds the queue lets it go: tell the user"),),
    "logs": (("", "what it wrote says more: tell the user of {}"),),
    # What follows is for a person; or a model cannot have met it.
    "tasks": (),
    "in another task": (),
    "use": (),
    "diff": (),
    "make a worktree": (),
    "remove worktree": (),
    "look at worktree": (),
    "make from template": (),
    "another id": (),
    "described": (),
    "paths": (),
    "help": (),
    "events": (),
    "usage": (),
    "worktrees": (),
    "templates": (),
    "new": (),
    "own task": (),
    "name a task": (),
    "queue every start": (),
    "spawn above": (),
}
_OF_USER = "the user has set this limit: tell them, and do without"


def error_result(error: Exception, tools: Collection[str] = ()) -> dict[str, Any]:
    """Return an error as a result, cut: it may quote what a model has sent, at any length.

    Args:
        tools: The names of the tools that the caller has.
    """
    if isinstance(error, AgentctlError):
        message, hint = wrong_for_model(error), hint_of(error, tools)
    elif isinstance(error, OSError):
        message = error_in_words(error)
        hint = steps_in_words(steps_of(next_step(error)), lambda step: _words_of(step, tools))
    else:
        message, hint = str(error), None
    return {"error": short(message)} | ({"hint": short(hint)} if hint else {})


def wrong_for_model(error: AgentctlError) -> str:
    """Return what is wrong; an argument is named as in Python, which most tools do, too.

    >>> wrong_for_model(AgentctlError(WithArguments(Argument("max_turns"), " must be at least 1")))
    '`max_turns` must be at least 1'
    """
    return error.wrong.worded(_named)


def _named(argument: Argument) -> str:
    return f"`{argument.name}`"


def hint_of(error: AgentctlError, tools: Collection[str]) -> str | None:
    """Return the next step for a caller with these tools; None if there is none."""
    if isinstance(error, Limited) and true_caller() is None:
        return _OF_USER
    return steps_in_words(error.steps, lambda step: _words_of(step, tools))


def _words_of(step: Step, tools: Collection[str]) -> str | None:
    if isinstance(step, AtTerminal | WithArguments):  # Tools have other arguments.
        return None
    return _step_hint(step, tools) if isinstance(step, Next) else step


def _step_hint(step: Next, tools: Collection[str]) -> str | None:
    hints = (hint for tool, hint in _WORDS[step.step] if not tool or tool in tools)
    return next((step.worded({step.step: hint}) for hint in hints), None)
