"""`hook`: the command that Claude Code and Codex run when a sub-agent of their own starts or ends."""

from __future__ import annotations

import sys

from agentctl.interfaces.commands.model.command_model import Command
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.operations.talk.hooking import take_hook


def hook(_call: Invocation) -> None:
    """Note the sub-agents that Claude Code and Codex start by themselves.

    Reads the JSON of the hooks SubagentStart and SubagentStop of Claude Code and Codex from standard input. `tree` and
    `list` show such a sub-agent below the worker that it runs in, or as observed if there is none. Whatever it reads,
    it exits with 0.
    """
    take_hook(sys.stdin.buffer)


COMMANDS = (
    Command(
        "hook",
        hook,
        (),
        """
agentctl hook < event.json
agentctl install claude --hooks
""",
    ),
)
