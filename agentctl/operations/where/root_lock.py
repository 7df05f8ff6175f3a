"""The lock of a root: whoever has it makes, chooses, puts away or brings back a task."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from agentctl.adapters.files import storage_errors
from agentctl.adapters.opening import refuse_odd
from agentctl.adapters.taskdir import Root
from agentctl.errors import LockTimeout

_LIMIT_S = 20


@contextlib.contextmanager
def root_locked(root: Root) -> Iterator[None]:
    """Hold the lock of a root.

    Raises:
        LockTimeout: It was not free in time.
    """
    from filelock import FileLock, Timeout  # 37 ms, and it imports asyncio: only for commands of people.

    refuse_odd(root.lock)
    lock = FileLock(root.lock, timeout=_LIMIT_S, mode=0o600)
    try:
        with storage_errors(root.lock, "lock"):
            lock.acquire()
    except Timeout as error:
        raise LockTimeout(f"{root.lock} is still locked after {_LIMIT_S} s") from error
    try:
        yield
    finally:
        lock.release()
