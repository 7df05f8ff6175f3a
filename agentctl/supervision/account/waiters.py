"""Which workers wait for an account: for a dispatch in a tree of tasks, and for views."""

from __future__ import annotations

import contextlib
import os

from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import TreeDir, WorkerDir, names_in
from agentctl.domain.names import is_name
from agentctl.lean import TYPE_CHECKING
from agentctl.supervision.account.accounts import MOST_ACCOUNTS, Account, account_of, all_accounts

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import AwaitedAccount
    from agentctl.supervision.account.holds import Hold


class HeldInTree:
    """Which workers of a tree of tasks have to wait for their accounts; under the queue's lock."""

    def __init__(self, tree: TreeDir) -> None:
        self._tree = tree
        self._noted = {name for name in names_in(tree.cooling, MOST_ACCOUNTS) if is_name(name)}
        self._holds: dict[Account, Hold | None] = {}
        #: How long it is until the first worker that waits may start; None if none waits.
        self.soonest_s: float | None = None

    def __bool__(self) -> bool:
        return bool(self._noted)

    def holds(self, worker: WorkerDir) -> bool:
        """Return whether a worker has to wait."""
        account = account_of(worker) if self._noted else None
        if account is None or account.name not in self._noted:
            return False
        if account not in self._holds:
            from agentctl.supervision.account.holds import hold_of  # A shim needs it only if a worker waits.

            self._holds[account] = hold_of(account)
        hold = self._holds[account]
        left = hold.left_for(worker) if hold is not None else 0.0
        if left > 0:
            self.soonest_s = left if self.soonest_s is None else min(self.soonest_s, left)
        return left > 0

    def forget_freed(self) -> None:
        """Remove the notes of accounts that were found to be held no longer."""
        held = {account.name for account, hold in self._holds.items() if hold is not None}
        for name in {account.name for account in self._holds} - held:
            with contextlib.suppress(OSError):
                os.unlink(self._tree.cooling / name)


class Awaited:
    """The accounts for which workers in a queue wait, for views."""

    def __init__(self, folder: FilePath) -> None:
        accounts = all_accounts(folder)
        #: Usually no account is held, and then no order has to be read.
        self._are_any = any(_held_now(account, any_model=True) for account in accounts)

    def by(self, worker: WorkerDir) -> AwaitedAccount | None:
        """Return the account that a worker waits for; None if it waits for none."""
        account = account_of(worker) if self._are_any else None
        hold = _held_now(account) if account is not None else None
        return hold.to_json() if hold is not None else None


def _held_now(account: Account, *, any_model: bool = False) -> Hold | None:
    from agentctl.supervision.account.holds import held_now  # Few people have an account about which anything is known.

    return held_now(account, any_model=any_model)
