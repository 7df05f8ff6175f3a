"""The waker of a tree of tasks: a sleeping process that starts workers once their account may be used again.

Nothing depends on it. If it is killed, the next dispatch (at an end, a spawn, a wait) starts the workers whose time has
come, and another waker for the others.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from functools import partial

from agentctl.adapters import processes
from agentctl.adapters.clock import since_boot
from agentctl.adapters.locks import hold_alive, locked
from agentctl.adapters.paths import FilePath
from agentctl.adapters.patience import STORAGE_RETRY_S, patiently
from agentctl.adapters.taskdir import TreeDir
from agentctl.adapters.treedir import tree_at
from agentctl.adapters.watch import Watch
from agentctl.errors import AgentctlError
from agentctl.lean import TYPE_CHECKING
from agentctl.supervision.account.accounts import account_of
from agentctl.supervision.dispatch.dispatch import Dispatched, complete_dispatch, dispatch_locked
from agentctl.supervision.life.strangers import note_guardian
from agentctl.supervision.queue.tickets import read_queue
from agentctl.supervision.worker.control import name_holder
from agentctl.supervision.worker.deferred import use_folder

if TYPE_CHECKING:
    from typing import TypeVar

    T = TypeVar("T")

#: A step of the wall clock wakes nothing; one of this size may change who has to wait.
_STEP_S = 0.5
#: The least time between two looks at the whole queue, however much changes in it.
_LEAST_S = 0.2


def main(folder: str, root: str, keep: Callable[[], None]) -> None:
    """Run as the waker: drop what was inherited, detach from the parent, then wait.

    Args:
        keep: Opens what this process keeps open, once what it has inherited is closed.
    """
    os.closerange(3, 1 << 16)
    keep()
    use_folder(FilePath(folder))
    os.chdir("/")
    os.umask(0o077)
    if os.fork() == 0:
        with contextlib.suppress(AgentctlError, OSError):
            _Waker(tree_at(root), FilePath(folder)).run()
        os._exit(0)


class _Waker:
    def __init__(self, tree: TreeDir, folder: FilePath) -> None:
        self.tree, self.folder = tree, folder

    def run(self) -> None:
        """Dispatch whenever a worker need not wait any longer, until none waits for an account."""
        lock, me = hold_alive(self.tree.waker), processes.identify(os.getpid())
        if lock is None or me is None:
            return
        note_guardian(self.tree, me)
        name_holder(lock, me)
        with Watch([self.tree.queue]) as watch:
            folders = _known(self._folders, self.tree)
            for folder in folders:
                watch.add(folder)
            while _known(partial(self._is_awaited, watch, folders), self.tree):
                pass

    def _is_awaited(self, watch: Watch, folders: list[str]) -> bool:
        """Dispatch, and sleep while somebody waits; return whether anybody did."""
        if not self.tree.exists:
            return False
        stamps = _stamps(folders)
        held_s = self._dispatch().held_s
        if held_s is None:
            return False
        self._sleep(watch, held_s, folders, stamps)
        return True

    def _folders(self) -> list[str]:
        """Return the folders in which a change may let a worker start: the queue, and those of the accounts."""
        tickets = read_queue(self.tree)
        found = (account_of(self.tree.worker_at(ticket.worker_id)) for ticket in tickets)
        return [self.tree.queue, *{account.folder for account in found if account is not None}]

    def _dispatch(self) -> Dispatched:
        with locked(self.tree.queue_lock):
            done = dispatch_locked(self.tree, folder=self.folder)
        complete_dispatch(self.tree, done, folder=self.folder)
        return done

    def _sleep(self, watch: Watch, held_s: float, folders: list[str], stamps: list[int]) -> None:
        """Sleep until the first of the workers may start, or until that may have changed."""
        began, offset = since_boot(), time.time() - since_boot()
        time.sleep(min(held_s, _LEAST_S))
        while (left := began + held_s - since_boot()) > 0 and self.tree.exists:
            if _stamps(folders) != stamps or abs(time.time() - since_boot() - offset) > _STEP_S:
                return
            watch.sleep(left)


def _known(look: Callable[[], T], tree: TreeDir) -> T:
    return patiently(look, tree.path, lambda _: time.sleep(STORAGE_RETRY_S))


def _stamps(folders: list[str]) -> list[int]:
    """Return when the names in each folder changed last."""
    return [os.stat(folder).st_mtime_ns for folder in folders if os.path.isdir(folder)]
