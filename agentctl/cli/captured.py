"""Where the result of a command goes: to stdout, or to a program that carries the command out and takes it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

from agentctl.lean import Any

#: Takes the JSON document that a command shows. Once it returns, the document counts as delivered.
Take = Callable[[Any], object]

_taking: ContextVar[Take | None] = ContextVar("taking", default=None)


def taker() -> Take | None:
    """Return what takes the result of the command that is carried out here; None if it is to be printed."""
    return _taking.get()


@contextlib.contextmanager
def captured(take: Take) -> Iterator[None]:
    """Have results within the block taken instead of printed; notes for a person at a terminal are left out."""
    token = _taking.set(take)
    try:
        yield
    finally:
        _taking.reset(token)
