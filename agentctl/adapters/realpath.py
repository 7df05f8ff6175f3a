"""Resolves where a path leads in the end, through all links on its way."""

from __future__ import annotations

import os
import stat
from functools import cache

#: As many links as Linux follows in one path.
_MOST_LINKS = 40


class Resolver:
    """Tells where paths lead, relative ones from one folder."""

    def __init__(self, folder: str) -> None:
        self._folder = os.path.realpath(folder)
        self._found = cache(self._find)

    def __call__(self, path: str) -> str | None:
        """Return where a path leads; None where that is unknown.

        A path that does not exist yet leads to where it would be made. Unknown are a loop of links, a folder that may
        not be read, and `~`, which a shell would replace.
        """
        return self._found(path)

    def _find(self, path: str) -> str | None:
        if path.startswith("~"):
            return None
        try:
            found = os.path.realpath(os.path.join(self._folder, path))
            return None if _is_unclear(found) else found
        except (OSError, ValueError):
            return None

    def leads_out(self, path: str) -> bool:
        """Return whether a link in the folder leads a path out of it: anybody who works there may have made it."""
        place, waiting, links, passes = "/", os.path.join(self._folder, path).split("/")[::-1], 0, False
        while waiting:
            name = waiting.pop()
            if name in ("", "."):
                continue
            if name == "..":
                place = os.path.dirname(place)
                continue
            step = os.path.join(place, name)
            try:
                target = os.readlink(step)
            except (OSError, ValueError):
                place = step
                continue
            links, passes = links + 1, passes or self._holds(step)
            if links > _MOST_LINKS:
                return True
            place = "/" if target.startswith("/") else place
            waiting += target.split("/")[::-1]
        return passes and not self._holds(place)

    def _holds(self, path: str) -> bool:
        return os.path.commonpath([path, self._folder]) == self._folder


def _is_unclear(path: str) -> bool:
    """Return whether a resolved path still contains a link: `realpath` stops at a loop without an error."""
    place = "/"
    for name in path.split("/")[1:]:
        place = os.path.join(place, name)
        try:
            if stat.S_ISLNK(os.lstat(place).st_mode):
                return True
        except FileNotFoundError:
            return False
    return False
