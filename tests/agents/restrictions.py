"""What is restricted, by which call it is tried, and how the agent begins: all combinations, and enough of them."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from tests.agents.loose import loose_programs

#: Nobody is there to answer where it is asked.
RESTRICTIONS = ("deny", "ask", "a deny rule", "disallowedTools", "read-only")
#: The last one: the model has changed the mode in which it works, as far as its program lets it.
KINDS = ("shell", "background", "write", "edit", "MCP", "skill", "sub-agent", "after a change of mode")
#: `kept` is told in a later turn, by a message; `interrupted` in the middle of one.
BEGINNINGS = ("new", "resumed", "kept", "interrupted")


def combinations() -> list[Any]:
    """Return all combinations as parameters; those that only `make test-all` tries are marked as slow.

    The others are each restriction with each kind of call, and each of both with each beginning.
    """
    return [
        pytest.param(program, restriction, kind, beginning, marks=() if _is_chosen(place) else pytest.mark.slow)
        for program, loose in loose_programs().items()
        for place, (restriction, kind, beginning) in _places()
        if kind in loose.KINDS
    ]


def editors() -> list[tuple[str, str, str]]:
    """Return (program, restriction, kind of call) of agents in an editor: each restriction, with several kinds."""
    return [
        (program, restriction, loose.KINDS[place % len(loose.KINDS)])
        for first, (program, loose) in enumerate(loose_programs().items())
        for place, restriction in enumerate(RESTRICTIONS, start=first)
    ]


def kinds() -> list[tuple[str, str]]:
    """Return (program, kind of call) of what is done unasked where a person's own settings decide."""
    return [
        (program, kind)
        for program, loose in loose_programs().items()
        for kind in KINDS
        if kind in getattr(loose, "OWN_KINDS", loose.KINDS)
    ]


def guards() -> list[tuple[str, str]]:
    """Return (program, its person's own denial)."""
    return [(program, guard) for program, loose in loose_programs().items() for guard in loose.GUARDS]


def _places() -> list[tuple[tuple[int, int, int], tuple[str, str, str]]]:
    numbered = product(enumerate(RESTRICTIONS), enumerate(KINDS), enumerate(BEGINNINGS))
    return [((one, two, three), (first, second, third)) for (one, first), (two, second), (three, third) in numbered]


def _is_chosen(place: tuple[int, int, int]) -> bool:
    restriction, kind, beginning = place
    return (restriction + kind) % len(BEGINNINGS) == beginning
