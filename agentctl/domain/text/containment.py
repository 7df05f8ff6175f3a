"""Tells whether one path lies below another, and how programs rewrite paths, by their text alone: no link is known."""

from __future__ import annotations

#: What JavaScript takes off the ends of a text, and Python does not.
_MARK = "\ufeff"


def lies_in(path: str, folder: str) -> bool:
    """Return whether a path is below a folder.

    >>> [lies_in("/a/b", folder) for folder in ("/a", "/a/", "/", "/a/b", "/a/bc", "")]
    [True, True, True, False, False, False]
    """
    return bool(folder) and path.startswith(f"{folder.rstrip('/')}/")


def trimmed(path: str) -> str:
    """Return a path as JavaScript trims it, without blanks and marks of byte order at its ends.

    >>> trimmed(" \\ufeff/etc\\n")
    '/etc'
    """
    bare = path.strip().strip(_MARK)
    return path if bare == path else trimmed(bare)


def composed(path: str) -> str:
    """Return a path with each letter and its accents as one character, where there is one (NFC)."""
    if path.isascii():
        return path
    import unicodedata  # A megabyte.

    return unicodedata.normalize("NFC", path)
