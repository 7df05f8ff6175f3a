"""What of a project the program of an agent would obey without asking anybody: it is not started where there is any.

It is looked at twice. When an agent is ordered, so that whoever orders it is told; and right before each start of its
program, since it may have waited long by then, and others may have worked in its folder.
"""

from __future__ import annotations

import os

from agentctl.adapters.git import entry_above
from agentctl.adapters.opening import read_bytes
from agentctl.adapters.personal import home_folder
from agentctl.drivers.dialogue import Driver
from agentctl.errors import AgentctlError, Argument, Refused, WithArguments
from agentctl.lean import TYPE_CHECKING

if TYPE_CHECKING:
    from agentctl.errors import Hint

#: How much of a file is read at most; of a longer one nothing is known.
_MOST_BYTES = 16 << 20
#: Between the name of a file that an agent program obeys and the word without which it is harmless.
_ONLY_WITH = ": "


def refuse_obeyed(driver: Driver, cwd: str) -> None:
    """Raise `Refused` where a project has files that the agent's program obeys without asking anybody.

    Looked at are the working folder and those above it, up to the top of the repository; without one, all of them.
    """
    if not driver.obeys:
        return
    begin, home = os.path.realpath(cwd), home_folder(os.environ)
    repository = entry_above(begin)
    top, folder = os.path.dirname(repository) if repository else "/", begin
    while True:
        # The person's own settings do not count as a project's. But a program that works with other settings in place
        # of theirs reads them as a project's if it works in their home, or in a repository of it.
        is_project = bool(driver.facts.get("home")) and (repository is not None or folder == begin)
        for name, _, word in (entry.partition(_ONLY_WITH) for entry in driver.obeys):
            path = os.path.join(folder, name)
            is_own = path == os.path.join(home, name) and not is_project
            if not is_own and _says_something(path) and (not word or _may_say(path, word)):
                raise Refused(
                    f"{driver.name} would obey {path} without asking anybody, whoever wrote it",
                    hint=_hint(path, home),
                )
        if folder in (top, "/"):
            return
        folder = os.path.dirname(folder)


def _hint(path: str, home: str) -> Hint:
    is_persons = os.path.dirname(path) == home
    first = ("start it in another folder (", Argument("cwd"), ") or repository") if is_persons else ("remove it",)
    return (
        WithArguments(*first, ", or choose another ", Argument("driver")),
        "docs/agents.md says how to allow it for good",
    )


def _may_say(path: str, word: str) -> bool:
    """Return whether a file may contain a word; one that cannot be read, or writes letters as escapes, may."""
    try:
        data = read_bytes(path, _MOST_BYTES)
    except (AgentctlError, OSError):
        return True
    return word.encode() in data or b"\\" in data


def _says_something(path: str) -> bool:
    """Whether there is anything, other than an empty folder: Codex's sandbox leaves such behind."""
    try:
        return bool(os.listdir(path)) or os.path.islink(path)
    except OSError:
        return os.path.lexists(path)
