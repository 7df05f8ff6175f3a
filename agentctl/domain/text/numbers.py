"""Checks numbers from a file: JSON may also hold NaN, Infinity, and whole numbers too large for a float."""

from __future__ import annotations

#: Beyond it a float cannot tell a whole number from the next.
MOST = 2.0**53


def finite(value: object) -> float | None:
    """Return a number that is safe to calculate with and to show; None for anything else.

    >>> [finite(value) for value in (4.5, True, "4", 10**400, float("inf"), float("nan"))]
    [4.5, None, None, None, None, None]
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if abs(value) <= MOST else None
