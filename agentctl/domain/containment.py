"""Tells whether one path lies below another, by their text alone: for paths without links."""

from __future__ import annotations


def lies_in(path: str, folder: str) -> bool:
    """Return whether a path is below a folder.

    >>> [lies_in("/a/b", folder) for folder in ("/a", "/a/", "/", "/a/b", "/a/bc", "")]
    [True, True, True, False, False, False]
    """
    return bool(folder) and path.startswith(f"{folder.rstrip('/')}/")
