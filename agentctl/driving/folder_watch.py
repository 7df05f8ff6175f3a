"""Decides when a host looks at its worker's folder: after each change, and periodically in any case."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from agentctl.adapters.watch import SAFETY_S, SLICE_S, Watch


class FolderWatch:
    """Calls `look` whenever there may be something to see."""

    def __init__(self, watch: Watch, look: Callable[[], None]) -> None:
        self._watch, self._look = watch, look
        self._loop = asyncio.get_running_loop()
        self._next: asyncio.TimerHandle | None = None
        self._every = SAFETY_S if watch.fd is not None else SLICE_S
        if watch.fd is not None:
            self._loop.add_reader(watch.fd, self._changed)

    def begin(self) -> None:
        """Look for the first time: there may be something in the folder already."""
        self._tick()

    def again(self) -> None:
        """Look again in a moment; several calls cause one look."""
        if self._next is not None:
            self._next.cancel()
        self._next = self._loop.call_later(SLICE_S, self._tick)

    def stop(self) -> None:
        """Stop looking."""
        if self._next is not None:
            self._next.cancel()
        if self._watch.fd is not None:
            self._loop.remove_reader(self._watch.fd)

    def _changed(self) -> None:
        self._watch.drain()
        self._look()

    def _tick(self) -> None:
        self._next = self._loop.call_later(self._every, self._tick)
        self._look()
