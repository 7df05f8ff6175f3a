"""At stake: work that nobody waits for any more ends, and each descriptor is closed, whenever that was."""

from __future__ import annotations

import asyncio
import os
import select
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import anyio
import anyio.to_thread
import pytest

from agentctl.adapters.breakable_thread import in_breakable_thread
from tests.support import wait_until

T = TypeVar("T")


def descriptors() -> set[str]:
    return set(os.listdir("/dev/fd"))


def is_readable(fd: int) -> bool:
    return fd in select.select([fd], [], [], 0)[0]


async def in_pool(pool: ThreadPoolExecutor, work: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(pool, work)


def limited(limiter: anyio.CapacityLimiter) -> Callable[[Callable[[], T]], Awaitable[T]]:
    return partial(anyio.to_thread.run_sync, abandon_on_cancel=True, limiter=limiter)


def waits(begun: threading.Event, over: threading.Event, broken: int) -> None:
    begun.set()
    select.select([broken], [], [])
    over.set()


def test_a_result_and_an_error_are_passed_on_and_nothing_is_left_open() -> None:
    def fails(_: int) -> None:
        raise ZeroDivisionError

    async def both() -> bool:
        with ThreadPoolExecutor(1) as pool:
            before = descriptors()
            is_broken: bool = await in_breakable_thread(partial(in_pool, pool), is_readable)
            with pytest.raises(ZeroDivisionError):
                await in_breakable_thread(partial(in_pool, pool), fails)
            assert descriptors() == before
        return is_broken

    assert not asyncio.run(both())


def test_work_ends_when_nobody_waits_for_it_any_more() -> None:
    begun, over = threading.Event(), threading.Event()

    async def broken_off() -> None:
        with ThreadPoolExecutor(1) as pool:
            before = descriptors()
            task = asyncio.ensure_future(in_breakable_thread(partial(in_pool, pool), partial(waits, begun, over)))
            await asyncio.to_thread(begun.wait)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(over.wait, 20)
            wait_until(lambda: descriptors() <= before, what="the work to close its end")

    asyncio.run(broken_off())


def test_work_that_never_began_leaves_nothing_open_and_is_not_done_later() -> None:
    done: list[int] = []

    async def never_begun() -> None:
        limiter = anyio.CapacityLimiter(1)
        limiter.acquire_on_behalf_of_nowait("another call")
        before = descriptors()
        with anyio.move_on_after(0.01):
            await in_breakable_thread(limited(limiter), done.append)
        assert descriptors() == before

    asyncio.run(never_begun())
    assert done == []


def test_a_thread_that_comes_too_late_does_nothing() -> None:
    """As with a pool that begins the work although it was cancelled."""
    done: list[int] = []
    late: list[Callable[[], None]] = []

    async def kept(work: Callable[[], None]) -> None:
        late.append(work)
        await asyncio.sleep(3600)

    async def cancelled() -> None:
        with anyio.move_on_after(0.01):
            await in_breakable_thread(kept, done.append)

    before = descriptors()
    asyncio.run(cancelled())
    with pytest.raises(Exception, match="nobody waits"):
        late[0]()
    assert (done, descriptors()) == ([], before)
