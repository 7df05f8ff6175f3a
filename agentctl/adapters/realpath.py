"""Resolves where a path leads in the end, through all links on its way."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from functools import cache

from agentctl.domain.text.containment import composed, trimmed

#: As many links as Linux follows in one path.
_MOST_LINKS = 40
#: So many paths of a folder are looked at: about a fifth of a second.
_MOST_BELOW = 50_000


class Resolver:
    """Tells where paths lead, relative ones from one folder."""

    def __init__(self, folder: str) -> None:
        self._folder = os.path.realpath(folder)
        self._found, self._all = cache(self._find), cache(self._read_all)
        self._below = cache(lambda place: _all_below(place, _MOST_BELOW))

    def __call__(self, path: str) -> str | None:
        """Return where a path leads; None where that is unknown.

        A path that does not exist yet leads to where it would be made. Unknown are a loop of links, a folder that may
        not be read, and `~`, which a shell would replace.
        """
        return self._found(path)

    def readings(self, path: str) -> Sequence[str]:
        """Return all places to which a path may lead, by what programs make of its spelling before they open it.

        Some trim it, replace `~` by the home, compose its letters (NFC), or take each `..` off with the name before
        it, though that may be a link.
        """
        return self._all(path)

    def below(self, path: str) -> Sequence[str] | None:
        """Return the files and folders that lie in the places to which a path may lead, following no link in them.

        None where there are too many to look at. A folder may be closed to us: so it is to whoever searches it.
        """
        found: list[str] = []
        for place in self.readings(path):
            inside = self._below(place)
            if inside is None:
                return None
            found += inside
        return found

    def _find(self, path: str) -> str | None:
        return None if path.startswith("~") else self._resolved(os.path.join(self._folder, path))

    def _read_all(self, path: str) -> Sequence[str]:
        spellings = (os.path.join(self._folder, one) for one in _spellings(path))
        found = (self._resolved(place) for one in spellings for place in (one, os.path.normpath(one)))
        return tuple(dict.fromkeys(place for place in found if place is not None))

    def _resolved(self, place: str) -> str | None:
        try:
            found = os.path.realpath(place)
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


def _spellings(path: str) -> Iterator[str]:
    """Yield a path as it is written, and as programs rewrite it."""
    bare = trimmed(path)
    for one in dict.fromkeys((path, bare)):
        for expanded in dict.fromkeys((one, os.path.expanduser(one))):
            yield from dict.fromkeys((expanded, composed(expanded)))


def _all_below(folder: str, most: int) -> Sequence[str] | None:
    """Return what lies in a folder at any depth; None where it is more than so many."""
    found: list[str] = []
    waiting = [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if len(found) == most:
                        return None
                    found.append(entry.path)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except (OSError, ValueError):
            continue
    return found
