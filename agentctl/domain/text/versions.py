"""Compares the versions of programs."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"\d{1,9}", re.ASCII)


def parts(version: str) -> tuple[int, ...]:
    """Return a version as at most three numbers, of which the larger is the newer; () for a text without numbers.

    >>> parts("2.1.332") < parts("2.2-beta"), parts("?")
    (True, ())
    """
    return tuple(int(part) for part in _NUMBER.findall(version))[:3]
