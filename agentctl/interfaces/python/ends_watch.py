"""Watches many workers for their ends in one event loop: one view of the task, whose descriptors the loop watches.

The loop only sleeps on the descriptors. Reading the log, judging workers and starting queued ones may have to wait for
a lock, so each turn is done in the executor's one thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, NamedTuple, TypeVar  # noqa: TID251 - a generic one

from agentctl.adapters.taskdir import TaskDir
from agentctl.domain.states import Status
from agentctl.errors import StorageError
from agentctl.interfaces.python.wording import as_for_python, for_python
from agentctl.operations.wait.live_view import LiveTree
from agentctl.operations.wait.rounds import WaitRounds

End = TypeVar("End")


class _Seen(NamedTuple, Generic[End]):
    """What a turn found."""

    ends: dict[str, End]
    #: Worker -> the seq at which it blocked.
    blocked: dict[str, int]
    #: Worker -> what of it cannot be read: nobody would ever see its end.
    unreadable: dict[str, StorageError]


class Watcher(Generic[End]):
    """Makes a future for the end of each worker that is waited for.

    Args:
        thread: An executor with a single thread, so that no two turns overlap.
        read: Returns the result of a future for an ended worker; called in the thread.
    """

    def __init__(self, task: TaskDir, thread: ThreadPoolExecutor, read: Callable[[str], End]) -> None:
        self._task = task
        self._thread = thread
        self._read = read
        #: Called in the loop, once each time that a worker blocks.
        self.on_blocked: Callable[[str], None] | None = None
        #: Worker -> the futures that wait for it, each with the function that adapts the end for it.
        self._futures: dict[str, dict[asyncio.Future[End], Callable[[End], End]]] = {}
        self._blocks: dict[str, int] = {}
        self._woken = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None
        #: Kept between waits, so that the log need not be read again from its beginning.
        self._live_tree: LiveTree | None = None
        self._let_go: Callable[[], object] = lambda: None

    def end_of(self, instance: str, told_as: Callable[[End], End] = lambda end: end) -> asyncio.Future[End]:
        """Return the future of a worker's end; it may have ended before. Cancelling the future stops no worker."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[End] = loop.create_future()
        self._futures.setdefault(instance, {})[future] = told_as
        future.add_done_callback(lambda done: self._forget(instance, done))
        if self._watching is None or self._watching.done():
            self._woken = asyncio.Event()
            self._watching = loop.create_task(self._watch())
        self._woken.set()
        return future

    def fail(self, instance: str, error: BaseException) -> None:
        """End the waits for a worker with an error."""
        for future, _ in self._taken(instance):
            future.set_exception(error)

    def _taken(self, instance: str) -> list[tuple[asyncio.Future[End], Callable[[End], End]]]:
        self._blocks.pop(instance, None)
        return [item for item in self._futures.pop(instance, {}).items() if not item[0].done()]

    def _forget(self, instance: str, future: asyncio.Future[End]) -> None:
        """Remove a future that was cancelled."""
        waiting = self._futures.get(instance, {})
        if waiting.pop(future, None) is not None:
            if not waiting:
                self._taken(instance)
            self._woken.set()

    async def close(self) -> None:
        """Stop watching; futures that still wait are cancelled."""
        for future in [future for waiting in self._futures.values() for future in waiting]:
            future.cancel()
        if self._watching is not None:
            await asyncio.wait([self._watching])
        self._thread.submit(self._let_go)

    # -- in the loop -------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        """Watch as long as a future waits. Within a worker, its place is lent meanwhile."""
        loop = asyncio.get_running_loop()
        with contextlib.ExitStack() as loan:
            try:
                with for_python():
                    live_tree, rounds = await loop.run_in_executor(self._thread, self._open, loan)
                    while self._futures:
                        names = tuple(self._futures)
                        seen = await loop.run_in_executor(self._thread, self._turn, live_tree, rounds, names)
                        self._tell(seen)
                        if self._futures:
                            await self._sleep(live_tree)
            except Exception as error:  # noqa: BLE001 - the waiting futures get any error
                for name in list(self._futures):
                    self.fail(name, error)
            finally:
                # In the same thread, so after a turn that may be under way.
                with contextlib.suppress(RuntimeError):  # The interpreter is ending, which closes all descriptors.
                    self._thread.submit(loan.pop_all().close)

    def _tell(self, seen: _Seen[End]) -> None:
        for name, end in seen.ends.items():
            for future, told_as in self._taken(name):
                future.set_result(told_as(end))
        for name, error in seen.unreadable.items():
            self.fail(name, as_for_python(error))
        for name, seq in seen.blocked.items():
            if self.on_blocked is not None and self._blocks.get(name) != seq and name in self._futures:
                self._blocks[name] = seq
                self.on_blocked(name)

    async def _sleep(self, live_tree: LiveTree) -> None:
        """Sleep until a descriptor is ready, a future was added or removed, or it is time to look."""
        loop = asyncio.get_running_loop()
        watched = [fd for fd in (live_tree.watch.fd, *live_tree.top.sentinels()) if fd is not None]
        for fd in watched:
            loop.add_reader(fd, self._woken.set)
        try:
            async with asyncio.timeout(min(live_tree.top.until_look(), live_tree.watch.longest_s)):
                await self._woken.wait()
        except TimeoutError:
            pass
        finally:
            for fd in watched:
                loop.remove_reader(fd)
            self._woken.clear()

    # -- in the thread -----------------------------------------------------------------------------------------

    def _open(self, loan: contextlib.ExitStack) -> tuple[LiveTree, WaitRounds]:
        if self._live_tree is None:
            self._live_tree = live_tree = LiveTree(self._task)
            self._let_go = weakref.finalize(self, live_tree.__exit__, None, None, None)
        return self._live_tree, loan.enter_context(WaitRounds(self._live_tree))

    def _turn(self, live_tree: LiveTree, rounds: WaitRounds, names: Collection[str]) -> _Seen[End]:
        """Consume what woke the loop, and look at the named workers. Other tasks of the loop go on meanwhile."""
        live_tree.sleep(0)
        live_tree.update()
        view = live_tree.top.view
        workers = [view.workers[name] for name in names if name in view.workers]
        ended = [worker.instance for worker in workers if worker.is_terminal]
        if len(ended) == len(names):
            rounds.give_back()
        else:
            rounds.serve()
        blocked = {one.instance: one.block_seq or 0 for one in workers if one.status is Status.BLOCKED}
        unreadable = {one.instance: one.unreadable for one in workers if one.unreadable and not one.is_terminal}
        return _Seen({name: self._read(name) for name in ended}, blocked, unreadable)
