"""What a person is told about the record of a worktree: what is missing in it, and what lies in submodules alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentctl.domain.text.plaintext import plain


def worktree_notes(worktree: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each thing that a person could take for granted, but is otherwise."""
    changes = worktree.get("changes")
    if not isinstance(changes, dict):
        changes = {}
    if worktree.get("next"):
        yield f"what it changed in its worktree was not recorded; to record it: {plain(worktree['next'])}"
    elif changes.get("lost"):
        yield f"what it changed is no longer known: {plain(str(changes.get('error')))}"
    if changes.get("onlyCommits"):
        yield "its worktree was gone when its changes were recorded: what was not committed is lost"
    for one in changes.get("submodules") or ():
        kept = ", ".join(plain(file["path"]) for file in one["kept"]) or plain(str(one.get("why", "nothing")))
        held = held_in_words(one.get("commits"), one.get("files"))
        yield f"its submodule {plain(str(one.get('path')))} had {held} that were nowhere else; kept: {kept}"


def held_in_words(commits: object, files: object = 0) -> str:
    """Return how much a submodule holds.

    >>> held_in_words(1, 2)
    '1 commit and 2 changed files'
    """
    noted = ((commits, "commit"), (files, "changed file"))
    return " and ".join(f"{number} {what}{'' if number == 1 else 's'}" for number, what in noted if number)
