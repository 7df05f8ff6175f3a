"""A program of ours that could not load itself, since agentctl is being replaced: it is started again until it can.

It has done nothing by then, so this does not count as an attempt of the worker. An upgrade takes seconds.
"""

from __future__ import annotations

from agentctl.adapters.clock import monotonic
from agentctl.supervision.worker.endings import Decision

#: How a program of ours ends that could not be loaded (EX_TEMPFAIL of sysexits.h), and an interpreter without a script.
UNLOADED, _NO_SCRIPT = 75, 2
PAUSE_S = 1.0
_LONGEST_S = 60.0


class Unloaded:
    """Counts how often the program of a worker could not be loaded."""

    def __init__(self) -> None:
        self.times = 0
        self._until: float | None = None

    def is_tried_again(self, ending: Decision) -> bool:
        """Return whether the program is to be started again after this end, and count that."""
        if ending.exit_code not in {UNLOADED, _NO_SCRIPT}:
            self._until = None
            return False
        now = monotonic()
        self._until = self._until or now + _LONGEST_S
        self.times += now < self._until
        return now < self._until
