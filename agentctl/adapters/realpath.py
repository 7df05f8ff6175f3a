"""Where a path leads in the end, whatever links lie on its way."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from functools import cache


def resolver(folder: str) -> Callable[[str], str | None]:
    """Return what tells where a path leads that counts from `folder`; None where nobody can tell.

    What is not there yet leads to where it would be made. Nobody can tell of a loop of links, of what may not be looked
    into, and of `~`, which a shell would replace.
    """

    @cache
    def real(path: str) -> str | None:
        if path.startswith("~"):
            return None
        try:
            found = os.path.realpath(os.path.join(folder, path))
            return None if _is_unclear(found) else found
        except (OSError, ValueError):
            return None

    return real


def _is_unclear(path: str) -> bool:
    """Tell whether a link is left on the way: `realpath` stops at a loop and says nothing."""
    place = "/"
    for name in path.split("/")[1:]:
        place = os.path.join(place, name)
        try:
            if stat.S_ISLNK(os.lstat(place).st_mode):
                return True
        except FileNotFoundError:
            return False
    return False
