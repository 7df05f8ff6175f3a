"""Runs each call in a thread of its own; breaking off a call wakes its thread and stops no worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import anyio
import anyio.to_thread

from agentctl.adapters.breakable_thread import in_breakable_thread
from agentctl.tools.awaited_worker import Target
from agentctl.tools.definition import Call
from agentctl.tools.scope import Scope

T = TypeVar("T")

#: A waiting thread takes no processor time; the limit is so high that no call has to wait for a thread.
_MOST_THREADS = 1000


class Tells(Protocol):
    """Reports to a caller that its call still waits."""

    def waits_for(self, scope: Scope, targets: Sequence[Target]) -> None:
        """Note which workers it waits for."""

    async def tell(self) -> None:
        """Send the progress of the call now."""


class Threads:
    """Runs calls in threads. It must be made within the event loop.

    Args:
        progress_s: How often a waiting caller is sent progress: some take silence for death.
    """

    def __init__(self, progress_s: float) -> None:
        self._limiter = anyio.CapacityLimiter(_MOST_THREADS)
        self._progress_s = progress_s

    async def run(self, work: Callable[[Call], T], *, limit_s: float | None = None, tell: Tells | None = None) -> T:
        """Return the result of a call's work, run in a thread; cancelling this breaks the call off."""
        on_wait = tell.waits_for if tell is not None else None

        def breakable(broken: int) -> T:
            return work(Call(limit_s=limit_s, broken=broken, on_wait=on_wait))

        if tell is None:
            return await in_breakable_thread(self._in_thread, breakable)
        done: list[T | Exception] = []
        async with anyio.create_task_group() as group:
            group.start_soon(self._tell, tell)
            try:
                done.append(await in_breakable_thread(self._in_thread, breakable))
            except Exception as error:  # noqa: BLE001 - raised again outside the group, which would wrap it
                done.append(error)
            group.cancel_scope.cancel()
        if isinstance(done[0], Exception):
            raise done[0]
        return done[0]

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._limiter)

    async def _tell(self, tell: Tells) -> None:
        while True:
            await anyio.sleep(self._progress_s)
            await tell.tell()
