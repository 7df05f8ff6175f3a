"""All commands, as tests go through them."""

from __future__ import annotations

from functools import cache

from agentctl.interfaces.commands.model.catalogue import VERBS, command_named
from agentctl.interfaces.commands.model.command_model import Command, Family


@cache
def all_commands() -> dict[str, Command]:
    """Return every command, by its words: `interact list`."""
    found: dict[str, Command] = {}
    for name in VERBS:
        one = command_named(name)
        if isinstance(one, Family):
            found |= {f"{name} {command.name}": command for command in one.commands}
        else:
            found[name] = one
    return found
