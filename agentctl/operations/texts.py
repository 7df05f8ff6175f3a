"""Whole texts of which only the beginning was told: each in a file of its own that holds it and nothing else.

Whoever tells of a cut text makes its file. It is named after its content, so what an earlier answer named stays as it
was told.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from agentctl.adapters.files import make_folder, write_whole
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import AgentDir
from agentctl.errors import AgentctlError
from agentctl.lean import NamedTuple
from agentctl.operations.ownership import is_own

#: Readers of files for models cut a line at 2,000 characters (Claude Code's Read does, 2.1).
_LONGEST_LINE, _WIDTH = 2000, 1000
_NAME_CHARACTERS = 16


class KeptText(NamedTuple):
    """Where a text is: as it is, and, where it has longer lines than readers show, in shorter ones."""

    path: str
    wrapped: str | None


def keep_text(agent: AgentDir, text: str) -> KeptText | None:
    """Put a text of a worker into a file; None where that cannot be: another person's task, a read-only folder."""
    data = text.encode()
    name = hashlib.sha256(data).hexdigest()[:_NAME_CHARACTERS]
    try:
        if not is_own(agent.task):
            return None
        make_folder(agent.texts)
        path = agent.texts / f"{name}.txt"
        _write(path, data)
        if all(len(line) <= _LONGEST_LINE for line in text.split("\n")):
            return KeptText(str(path), None)
        wrapped = agent.texts / f"{name}.wrapped.txt"
        _write(wrapped, "\n".join(_wrapped(text)).encode())
    except (AgentctlError, OSError):
        return None
    return KeptText(str(path), str(wrapped))


def _write(path: FilePath, data: bytes) -> None:
    """Write it, unless it is there: a worker can put anything into a file of its folder."""
    try:
        is_there = path.read_bytes(len(data) + 1) == data
    except (AgentctlError, OSError):
        is_there = False
    if not is_there:
        write_whole(path, data)


def _wrapped(text: str) -> Iterator[str]:
    """Yield the lines of a text, long ones broken at a space where there is one."""
    for line in text.split("\n"):
        rest = line
        while len(rest) > _WIDTH:
            space = rest.rfind(" ", 1, _WIDTH)
            end = space if space > 0 else _WIDTH
            yield rest[:end]
            rest = rest[end:].removeprefix(" ")
        yield rest
