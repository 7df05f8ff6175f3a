"""The names of those drivers that are of no one agent program."""

from __future__ import annotations

#: The driver of agents from a model alone.
PLAIN = "llm"
#: A command that the definition names.
COMMAND = "command"
#: Any program that speaks ACP: the definition names it, as with `command`.
ANY_ACP = "acp"
