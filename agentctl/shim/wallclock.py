"""Whether a tree of tasks has used up its `maxWallSeconds`: checked before a start, and whenever it may be so."""

from __future__ import annotations

from agentctl.adapters.clock import monotonic
from agentctl.adapters.taskdir import TreeDir
from agentctl.adapters.taskyaml.cache import known_limits
from agentctl.lean import TYPE_CHECKING
from agentctl.shim.workclock import WorkClock

if TYPE_CHECKING:
    from agentctl.supervision.account.ledger import Ledger

_NEVER = float("inf")


class WallClock:
    """The time in which at least one worker of the tree was at work, as one shim sees it."""

    def __init__(self, tree: TreeDir) -> None:
        self.tree = tree
        self._ledger: Ledger | None = None
        #: The limit at the last look, and the earliest time it can be reached: work grows no faster than the clock.
        self._most, self._until = 0.0, 0.0

    def due(self) -> float:
        """Return the earliest time at which the limit can be reached, as far as is known; infinity if there is none."""
        return self._until if self._most else _NEVER

    def broken(self, own: WorkClock) -> str | None:
        """Return a message with the figures of the limit, once it is reached.

        Args:
            own: The clock of the worker that the shim guards, which knows more than the worker's files.
        """
        most = known_limits(self.tree).max_wall_seconds
        if not most or (most == self._most and monotonic() < self._until):
            return None
        from agentctl.domain.tree.budget import TreeUsage  # Few trees have this limit.
        from agentctl.supervision.account.ledger import Ledger

        self._ledger = self._ledger or Ledger(self.tree)
        used = self._ledger.update().wall_s(own.worker.path, own.to_json())
        self._most, self._until = most, monotonic() + most - used
        return TreeUsage(wall_s=used).excess(known_limits(self.tree), ("max_wall_seconds",))
