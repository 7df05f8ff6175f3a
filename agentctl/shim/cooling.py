"""A worker whose account is left alone after a rate limit: it waits, its slot lent, and is not failed for it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

from agentctl.adapters.config import known_limits
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import AgentDir, TaskDir
from agentctl.domain.states import Reason
from agentctl.errors import AgentctlError
from agentctl.supervision import cooldown
from agentctl.supervision.endings import Ending

#: So often a worker is begun again after a rate limit, beside its own retries.
MOST_TIMES = 5
_LOOK_S, _GUEST_LOOK_S = 1.0, 0.2


class Cooling:
    """The account of one worker. Without an account (a command) nothing is ever waited for."""

    def __init__(self, agent: AgentDir, root: TaskDir, folder: FilePath, account: str) -> None:
        self.agent, self.root, self.folder, self.account = agent, root, folder, account
        #: How often the worker was begun again for this.
        self.times = 0

    def left(self) -> float:
        """Return for how long the account is to be left alone."""
        return cooldown.left(self.folder, self.account) if self.account else 0.0

    def begin(self, ending: Ending) -> float:
        """Leave the account alone after a rate limit; return for how long, 0 where the ending stands."""
        if ending.reason is not Reason.RATE_LIMITED or not self.account or self.times >= MOST_TIMES:
            return 0.0
        pause = known_limits(self.root).cooldown_seconds * 2**self.times
        if not pause:
            return 0.0
        try:
            cooldown.begin(self.folder, self.account, pause)
        except (AgentctlError, OSError):
            return 0.0  # The folder in memory is gone: nothing can be shared.
        self.times += 1
        return self.left()

    def wait(self, rest: Callable[[float], None], is_stopped: Callable[[], bool]) -> None:
        """Wait until the account may be used again and the slot is the worker's own.

        Args:
            rest: Sleeps for so long, or until woken.
            is_stopped: Tells whether there is no use in waiting any more.
        """
        from agentctl.supervision.standby import Standby  # Only now: it brings the dispatch along.

        standby = Standby(self.agent, self.root, self.folder)
        mark = self._mark()
        try:
            with standby.lent():
                while (left := self.left()) and not is_stopped():
                    rest(min(left, _LOOK_S))
        finally:
            if mark is not None:
                os.close(mark)
        while not standby.has_own() and not is_stopped():
            rest(_GUEST_LOOK_S)

    def _mark(self) -> int | None:
        with contextlib.suppress(AgentctlError, OSError):  # Without it more than one waits.
            return cooldown.hold(self.root, self.account)
        return None
