"""Does something right before this process opens a file: between two reads of the product, which stay as they are.

A file that is to take the place of another is called `PATH.tmp` here, whatever its name is.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

#: Path -> what happens at each opening, one after the other.
_awaited: dict[str, Iterator[Callable[[], object]]] = {}
#: The end of the name of a file that is to take the place of another.
_UNIQUE = re.compile(r"\.\d+(\.[0-9a-f]{8})?\.tmp$")


def nothing() -> None:
    """Let an opening pass."""


@contextmanager
def at_openings(path: str, acts: Iterable[Callable[[], object]]) -> Iterator[None]:
    """During the block, do one thing after the other right before a file is opened; an `OSError` is the file's."""
    _listen()
    _awaited[path] = iter(acts)
    try:
        yield
    finally:
        _awaited.pop(path, None)


@cache  # A hook stays as long as the process.
def _listen() -> None:
    sys.addaudithook(_heard)


def _heard(event: str, args: tuple[Any, ...]) -> None:
    if event != "open" or not isinstance(args[0], str):
        return
    path = _UNIQUE.sub(".tmp", args[0])
    if path not in _awaited:
        return
    acts = _awaited.pop(path)  # What happens may open it as well.
    try:
        next(acts, nothing)()
    finally:
        _awaited[path] = acts
