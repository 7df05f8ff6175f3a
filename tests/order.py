"""The order in which tests run beside each other: the longest begin first, so that none is left for the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import pytest

T = TypeVar("T")
#: The marks of long tests, the longest first.
LONG = ("soak", "slow")


def length(item: pytest.Item) -> int:
    """Return a number that is smaller for longer tests."""
    return next((place for place, mark in enumerate(LONG) if item.get_closest_marker(mark)), len(LONG))


def dealt(items: Sequence[T], hands: int) -> list[T]:
    """Deal like cards, and return one hand after the other, the smallest first.

    `--dist worksteal` cuts the tests into one piece for each process, the smallest first, and each runs its own piece
    from the front: after this each has long tests in front, and as many of them as the others.
    """
    return [item for hand in reversed(range(hands)) for item in items[hand::hands]]
