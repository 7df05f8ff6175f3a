"""Does something right before this process opens a file: between two reads of the product, which stay as they are."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

#: Path -> what happens at each opening, one after the other.
_awaited: dict[str, Iterator[Callable[[], object]]] = {}


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
    if event != "open" or not isinstance(args[0], str) or args[0] not in _awaited:
        return
    acts = _awaited.pop(args[0])  # What happens may open it as well.
    try:
        next(acts, nothing)()
    finally:
        _awaited[args[0]] = acts
