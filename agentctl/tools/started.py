"""Whom a session has started by its tools: what `wait` waits for where nobody is named."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from agentctl.tools.definition import Target


class Started:
    """The workers that one session has started."""

    def __init__(self) -> None:
        self._mine: dict[str, Target] = {}
        self._lock = threading.Lock()

    def note(self, targets: Iterable[Target]) -> None:
        """Note who was started; of an agent that is continued, the run before is waited for no more."""
        with self._lock:
            self._mine |= {target.id: target for target in targets}

    def known(self) -> list[Target]:
        """Return them, in the order of their starts."""
        with self._lock:
            return list(self._mine.values())
