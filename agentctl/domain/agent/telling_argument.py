"""Which argument says most about a call: the command, the path, the address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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


def shell_line(words: Sequence[str]) -> str:
    """Return words quoted, each where a shell would take it for anything else; as `shell_line.js` does.

    >>> shell_line(["rm", "-rf", "a b"]), shell_line(["FOO=1", "make", "CC=cc"])
    ("rm -rf 'a b'", "'FOO=1' make CC=cc")
    """
    import shlex  # Few commands are lists.

    quoted = [shlex.quote(word) for word in words]
    if quoted and quoted[0] == words[0] and "=" in words[0]:  # Bare it would be an assignment.
        quoted[0] = f"'{words[0]}'"
    return " ".join(quoted)
