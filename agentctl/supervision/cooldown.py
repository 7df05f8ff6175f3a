"""Accounts that are left alone for a while, because their provider takes no more requests now.

When that ends stands in a file of the private folder in memory, so all tasks of a person share it. A shim that waits
for it holds a lock in its tree (`cooling/`): as long as one waits there, no other worker of the account is started in
that tree only to wait too. Each waiting shim wakes by itself, so nobody else has to start the queue again.
"""

from __future__ import annotations

import os

from agentctl.adapters.files import make_folder, read_quietly
from agentctl.adapters.instants import seconds_until, write_instant
from agentctl.adapters.locks import hold_alive, is_alive_held, locked
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import AgentDir, TaskDir
from agentctl.domain.names import is_name

LONGEST_S = 3600.0
_PREFIX = "cooling-"


def begin(folder: FilePath, account: str, seconds: float) -> None:
    """Leave an account alone for so long from now; one that is to be left alone for longer stays so."""
    with locked(folder / ""):
        write_instant(folder / (_PREFIX + account), max(left(folder, account), min(seconds, LONGEST_S)))


def left(folder: FilePath, account: str) -> float:
    """Return for how long an account is still to be left alone; 0 where it is not."""
    path = folder / (_PREFIX + account)
    rest = seconds_until(path) if path.exists() else None
    return rest if rest is not None and 0 < rest <= LONGEST_S else 0.0


def all_left(folder: FilePath) -> dict[str, float]:
    """Return the accounts that are left alone, and for how long."""
    accounts = [name.removeprefix(_PREFIX) for name in os.listdir(folder) if name.startswith(_PREFIX)]
    found = {account: left(folder, account) for account in accounts}
    return {account: seconds for account, seconds in found.items() if seconds}


def told(account: str, seconds: float) -> str:
    """Return what is said of a worker that waits."""
    return f"the account of {account} is left alone for another {seconds:.0f} s after a rate limit"


def hold(root: TaskDir, account: str) -> int | None:
    """Note that somebody of the tree waits for an account, as long as the descriptor is open; None where one does."""
    make_folder(root.cooling)
    return hold_alive(root.cooling / account)


def waited_for(root: TaskDir) -> set[str]:
    """Return the accounts that somebody of the tree waits for."""
    try:
        names = os.listdir(root.cooling)
    except FileNotFoundError:
        return set()
    return {name for name in names if is_alive_held(root.cooling / name)}


def account_of(agent: AgentDir) -> str:
    """Return the account that a worker's program uses; none of a command."""
    order = read_quietly(agent.spec).get("order")
    account = order.get("account") if isinstance(order, dict) else None
    return account if isinstance(account, str) and is_name(account) else ""
