"""Whether a tree of tasks has been at work for as long as it may: looked at before a start, and each second."""

from __future__ import annotations

from agentctl.adapters.config import known_limits
from agentctl.adapters.taskdir import TaskDir
from agentctl.lean import TYPE_CHECKING

if TYPE_CHECKING:
    from agentctl.supervision.ledger import Ledger


class WallClock:
    """The time in which at least one worker of the tree was at work."""

    def __init__(self, root: TaskDir) -> None:
        self.root = root
        self._ledger: Ledger | None = None

    def broken(self) -> str | None:
        """Return the figures of the limit, once it is reached."""
        limits = known_limits(self.root)
        if not limits.max_wall_seconds:
            return None
        from agentctl.domain.budget import Account  # Few trees have such a limit.
        from agentctl.supervision.ledger import Ledger

        self._ledger = self._ledger or Ledger(self.root)
        return Account(wall_s=self._ledger.update().wall_s()).excess(limits, ("max_wall_seconds",))
