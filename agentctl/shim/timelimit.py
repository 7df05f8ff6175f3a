"""A time limit that stands still while its worker is blocked or paused, and while the machine sleeps."""

from __future__ import annotations


class TimeLimit:
    """Seconds that are left, on the monotonic clock of the caller."""

    def __init__(self, seconds: float, now: float) -> None:
        self._left = seconds
        self._since: float | None = now

    def stand_still(self, now: float, still: bool) -> None:
        """Stop or start the clock; saying the same again changes nothing."""
        if still and self._since is not None:
            self._left -= now - self._since
            self._since = None
        elif not still and self._since is None:
            self._since = now

    def due(self) -> float | None:
        """Return the instant at which it passes; None while it stands still."""
        return None if self._since is None else self._since + self._left

    def is_over(self, now: float) -> bool:
        """Tell whether it has passed.

        >>> limit = TimeLimit(10, now=0); limit.stand_still(4, True); limit.stand_still(100, False)
        >>> limit.is_over(105), limit.is_over(106)
        (False, True)
        """
        due = self.due()
        return due is not None and now >= due
