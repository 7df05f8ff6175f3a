"""Records an agent's usage with each report of its program, and checks it against the limits of its tree.

`spent.json` is written before the tree's usage is read. So if two agents break a limit at the same moment, at least
one of them sees the usage of both.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from agentctl.adapters.files import read_known, to_json, write_whole
from agentctl.adapters.taskdir import WorkerDir
from agentctl.adapters.taskyaml.cache import known_limits
from agentctl.adapters.treedir import tree_of
from agentctl.domain.activity.row import Row, RowType
from agentctl.domain.tree.budget import Spent, TreeUsage, spent_from, total
from agentctl.domain.tree.limits import KEYS, Limits
from agentctl.drivers.order import Order
from agentctl.errors import AgentctlError
from agentctl.supervision.worker.spec import held_limits

if TYPE_CHECKING:
    from agentctl.supervision.account.ledger import Ledger


class UsageMeter:
    """What one run of an agent has used up, and what its tree may still use."""

    def __init__(self, worker: WorkerDir) -> None:
        self.worker, self.tree = worker, tree_of(worker.task)
        #: What earlier attempts have used up.
        before = read_known(worker.spent)
        self._before = spent_from(before) if before else Spent()
        self._rows: dict[str, Spent] = {}
        self._cost: float | None = None
        #: Read once: the agent may be able to write this file, and that of the tree.
        self._held = held_limits(worker)

    @property
    def spent(self) -> Spent:
        """What the agent has used up over all of its attempts."""
        cost = Spent(cost_usd=self._cost, lacks_tokens=not self._rows, lacks_cost=self._cost is None)
        return total([self._before, *self._rows.values(), cost])

    def note(self, row: Row) -> bool:
        """Add a row of activity; return whether it reports usage. A later row replaces those with the same id."""
        if row.type is not RowType.USAGE:
            return False
        self._rows[row.id] = spent_from(row.detail or {})._replace(cost_usd=None, lacks_cost=False)
        self._write()
        return True

    def pay(self, cost_usd: float | None) -> None:
        """Record what this run has cost so far, in US dollars."""
        if cost_usd is not None:
            self._cost = cost_usd
            self._write()

    def _write(self) -> None:
        try:
            write_whole(self.worker.spent, to_json(self.spent.to_json()), durable=False)
        except (AgentctlError, OSError):
            pass  # A full disk: the next report writes it all.

    # -- the tree ------------------------------------------------------------------------------------------------

    def excess(self) -> str | None:
        """Return the limit that the tree has gone beyond, in words; None if there is none."""
        limits = self._limits()
        return self._account().broken(limits) if _is_metered(limits) else None

    def refusal(self) -> str | None:
        """Return the limit that leaves nothing for this run, in words; None if there is none."""
        limits = self._limits()
        if not _is_metered(limits):
            return None
        account = self._account()._replace(reserved_usd=self._reserved_by_others())
        return account.excess(limits, ("max_tokens", "max_cost_usd"))

    def hand_on(self, order: Order) -> Order:
        """Return the order, with its limit of money lowered to what the tree has left."""
        limits = self._limits()
        if not limits.max_cost_usd:
            return order
        account = self._account()._replace(reserved_usd=self._reserved_by_others())
        rest = round(account.left(limits)[KEYS["max_cost_usd"]], 6)
        own = order.max_budget_usd
        return order._replace(max_budget_usd=rest if own is None else min(own, rest))

    def _limits(self) -> Limits:
        return known_limits(self.tree).no_looser_than(self._held)

    def _account(self) -> TreeUsage:
        return self._ledger.update().account()

    def _reserved_by_others(self) -> float:
        return self._ledger.reserved_by_others(self.worker)

    @cached_property
    def _ledger(self) -> Ledger:
        from agentctl.supervision.account.ledger import Ledger  # Not needed for the many trees without limits.

        return Ledger(self.tree)


def _is_metered(limits: Limits) -> bool:
    return bool(limits.max_tokens or limits.max_cost_usd)
