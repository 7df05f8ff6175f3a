"""Which argument says most about a call: the command, the path, the address."""

from __future__ import annotations

from collections.abc import Mapping

from agentctl.domain.agent.shell_line import shell_line
from agentctl.lean import Any

#: What a model calls its own call: it says nothing about what the call does.
DESCRIPTION = "description"
#: The arguments that say most about a call; the first one present is shown.
_TELLING = ("command", "cmd", "file_path", "path", "pattern", "query", "url", DESCRIPTION, "prompt", "message")


def telling_of(arguments: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the argument that says most about a call: its name and its text; None if none of those is there.

    >>> telling_of({"description": "list files", "command": ["rm", "-rf", "~"]}), telling_of({"n": 1})
    (('command', "rm -rf '~'"), None)
    """
    for key in _TELLING:
        value = arguments.get(key)
        if isinstance(value, str) and value:
            return key, value
        if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
            return key, shell_line(value)
    return None
