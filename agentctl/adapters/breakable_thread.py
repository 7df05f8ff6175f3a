"""Breaks off work in a thread: once nobody waits for its result, a descriptor that the work watches is readable."""

from __future__ import annotations

import os
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

from agentctl.errors import BrokenOff

T = TypeVar("T")


async def in_breakable_thread(in_thread: Callable[[Callable[[], T]], Awaitable[T]], work: Callable[[int], T]) -> T:
    """Return the result of some work in a thread; cancelling this breaks the work off.

    Args:
        in_thread: Does something in a thread, unless it is cancelled before that has begun.
        work: It is given the descriptor, which is open until it returns.
    """
    broken, holder = os.pipe()
    # Whoever takes it first closes `broken`: the thread, or who no longer waits for it to begin.
    begun = threading.Lock()

    def breakable() -> T:
        if not begun.acquire(blocking=False):
            raise BrokenOff("nobody waits for it any more")
        try:
            return work(broken)
        finally:
            os.close(broken)

    try:
        return await in_thread(breakable)
    finally:
        os.close(holder)
        if begun.acquire(blocking=False):
            os.close(broken)
