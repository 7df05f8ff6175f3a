"""Where the project that a folder belongs to has its top: a git repository is a project of its own.

A root above that top is the root of something else, such as a person's home, and is used only where it is named.
Nothing is run for this, and what the files say decides nothing but how far up a root is looked for.
"""

from __future__ import annotations

import os

from agentctl.adapters.files import storage_errors
from agentctl.adapters.opening import read_bytes
from agentctl.adapters.paths import FilePath
from agentctl.domain.text.containment import lies_in
from agentctl.errors import Damaged

_POINTS = "gitdir: "
_LONGEST = 8192


def top_below(above: FilePath, folder: FilePath) -> FilePath | None:
    """Return the top of the repository of a folder if a root lies above it; None if they belong together.

    Args:
        above: The root, which was found in a folder above.
        folder: Where somebody works; links in it are resolved.
    """
    if _is_in(folder, above):  # A worktree that agentctl has made, of whichever repository.
        return None
    top = _top_of(folder)
    return None if top is None or _is_in(above.parent, top) else top


def _is_in(path: str, folder: str) -> bool:
    return path == folder or lies_in(path, folder)


def _top_of(folder: FilePath) -> FilePath | None:
    """Return the top of the repository that a folder lies in; None where it lies in none."""
    place = folder
    while place != place.parent:
        entry = place / ".git"
        if entry.is_dir():
            if (entry / "HEAD").exists():  # The sandboxes of some agents' programs leave an empty `.git` behind.
                return place
        elif entry.exists():
            around = _repository_around(place, entry)
            return place if around is None else _top_of(around) or place
        place = place.parent
    return None


def _repository_around(place: FilePath, entry: FilePath) -> FilePath | None:
    """Return a folder of the repository that a submodule or a worktree lies in; None if it is not part of another one.

    A worktree may also lie beside a bare repository, in a folder whose `.git` names that one.
    """
    git_dir = _pointed_at(entry)
    if git_dir is None:
        return None
    if "/modules/" in git_dir:
        return place.parent
    common, kind = os.path.split(git_dir.parent)
    above = FilePath(os.path.dirname(common))
    return above if kind == "worktrees" and lies_in(place, above) and (above / ".git").exists() else None


def _pointed_at(entry: FilePath) -> FilePath | None:
    """Return git's own folder that a `.git` file names."""
    with storage_errors(entry, "read"):
        try:
            text = os.fsdecode(read_bytes(entry, _LONGEST)).rstrip("\n")
        except (FileNotFoundError, NotADirectoryError, Damaged):
            return None
    if not text.startswith(_POINTS):
        return None
    return FilePath(os.path.realpath(os.path.join(entry.parent, text.removeprefix(_POINTS))))
