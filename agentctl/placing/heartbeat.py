"""The node's sign of life: the time at which its heartbeat last changed, on the clock of this machine.

The clocks of two machines differ, so the time in the file is only compared with itself.
"""

from __future__ import annotations

import contextlib
import os

from agentctl.adapters.clock import monotonic
from agentctl.adapters.files import write_whole
from agentctl.adapters.taskdir import LaunchDir

#: How often a node gives one.
BEAT_S = 10.0


class HeardFrom:
    """Notes when the heartbeat of a node changes."""

    def __init__(self, launch: LaunchDir) -> None:
        self._launch = launch
        self._seen: int | None = None
        self._since = monotonic()

    def silent_s(self) -> float:
        """Return for how long the node has given no sign of life, as far as was seen from here."""
        with contextlib.suppress(OSError):
            os.listdir(
                self._launch.path
            )  # Over NFS this makes the names that were looked up before be looked up again.
            changed = os.stat(self._launch.heartbeat).st_mtime_ns
            if changed != self._seen:
                self._seen, self._since = changed, monotonic()
        return monotonic() - self._since


class Heart:
    """Gives signs of life, on the node."""

    def __init__(self, launch: LaunchDir) -> None:
        self._launch = launch
        self._next = 0.0

    def beat(self) -> None:
        """Give a sign of life, if it is time."""
        if monotonic() >= self._next:
            self._next = monotonic() + BEAT_S
            with contextlib.suppress(OSError):
                if self._launch.heartbeat.exists():
                    os.utime(self._launch.heartbeat)
                else:
                    write_whole(self._launch.heartbeat, b"", durable=False)
