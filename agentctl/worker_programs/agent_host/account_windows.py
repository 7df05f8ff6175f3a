"""Records what an agent's program reports about usage windows, for all agents that share the account."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from agentctl.adapters import eventlog
from agentctl.adapters.clock import iso_of, now_iso
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain import events as ev
from agentctl.domain.tree.windows import Window, plausible
from agentctl.drivers.order import Order
from agentctl.errors import AgentctlError
from agentctl.supervision.account.accounts import account_in
from agentctl.supervision.account.holds import held_now, tell


class OwnAccount:
    """The account of one run of an agent program."""

    def __init__(self, worker: WorkerDir, order: Order) -> None:
        self.worker = worker
        self._account = account_in(order.to_json(), worker)
        #: The names of the windows that a warning was written about.
        self._warned: set[str] = set()

    def report(self, windows: Sequence[Window]) -> None:
        """Record the windows that the program reported; warn once about each that is nearly used up."""
        if self._account is None:
            return
        windows = plausible(windows, time.time())
        with contextlib.suppress(AgentctlError, OSError):  # The next answer brings another report.
            tell(self._account, windows)
        for window in windows:
            if window.is_near and window.name not in self._warned:
                self._warned.add(window.name)
                self._warn(self._account.name, window)

    def holds(self) -> bool:
        """Return whether the account is used up until a known time."""
        hold = held_now(self._account) if self._account is not None else None
        return hold is not None and hold.window is not None

    def _warn(self, account: str, window: Window) -> None:
        payload = {
            "account": account, "window": window.name, "usedPercent": window.used_percent,
            "resetsAt": None if window.resets_at is None else iso_of(window.resets_at),
        }  # fmt: skip
        event = ev.make_event(now_iso(), ev.NEAR_LIMIT, self.worker.task.id, "agentctl", payload, self.worker.instance)
        with contextlib.suppress(AgentctlError, OSError):  # A full disk: no work depends on this event.
            eventlog.append(self.worker.task.events, [event])
