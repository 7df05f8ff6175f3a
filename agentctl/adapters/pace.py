"""How a thread that reads or searches leaves the processor to the one that answers keys.

Python runs one thread at a time, and makes another one wait 5 ms before it takes over. A thread that sleeps often is
never waited for as long.
"""

from __future__ import annotations

import time

_WORK_S, _REST_S = 0.002, 0.001


class Pace:
    """The pace of one thread."""

    def __init__(self) -> None:
        self._since = time.monotonic()

    def keep(self) -> None:
        """Rest, if it is time to; to be called every millisecond or so."""
        if time.monotonic() - self._since > _WORK_S:
            time.sleep(_REST_S)
            self._since = time.monotonic()
