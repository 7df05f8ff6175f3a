"""How a worker asks and reports from a sandbox that lets it write nothing of its task: by small files in its outbox.

The program of its driver, outside the sandbox, takes up each file as an entry of this one worker. The files are trusted
for nothing else, so a worker that fills them with lies can do no more than `report` lets it do.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator, Mapping
from typing import Any

from agentctl.adapters.clock import monotonic
from agentctl.adapters.files import storage_errors, to_json, write_all
from agentctl.adapters.locks import hold_alive
from agentctl.adapters.taskdir import WorkerDir
from agentctl.adapters.watch import Watch
from agentctl.errors import AtTerminal, Refused, StorageError, UsageError

#: The longest file that is taken up.
LONGEST = 1 << 16
_WALLED = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
#: How long a worker waits until its driver has taken an entry up.
_PATIENCE_S = 20.0


def is_walled(worker: WorkerDir, error: Exception) -> bool:
    """Return whether a write failed because a sandbox lets this process write nothing but its worker's outbox."""
    cause = error if isinstance(error, OSError) else error.__cause__
    is_refused = isinstance(cause, OSError) and cause.errno in _WALLED
    return is_refused and worker.outbox.is_dir() and os.access(worker.outbox, os.W_OK)


def deliver_entry(worker: WorkerDir, entry: Mapping[str, Any]) -> None:
    """Put an entry into the outbox, and return when it has been taken up."""
    with delivered(worker, entry):
        pass


@contextlib.contextmanager
def delivered(worker: WorkerDir, entry: Mapping[str, Any]) -> Iterator[None]:
    """Put an entry into the outbox and run the body when it has been taken up; a lock shows that the sender is alive.

    Raises:
        UsageError: The entry is too long.
        Refused: It was not taken up in time.
    """
    data = to_json(entry)
    if len(data) > LONGEST:
        raise UsageError(f"this is too long to be sent from within a sandbox: {len(data)} bytes; at most {LONGEST}")
    name = os.urandom(8).hex()
    draft, path = worker.outbox / f".{name}.tmp", worker.outbox / f"{name}.json"
    with storage_errors(path, "write"), Watch([worker.outbox]) as watch:
        lock = hold_alive(draft)
        if lock is None:
            raise StorageError(f"cannot write {path}: its name is taken")
        try:
            write_all(lock, data)
            os.rename(draft, path)
            _await_taken(path, watch)
            yield
        finally:
            os.close(lock)
            for left in (draft, path):
                with contextlib.suppress(OSError):
                    os.unlink(left)


def _await_taken(path: os.PathLike[str] | str, watch: Watch) -> None:
    deadline = monotonic() + _PATIENCE_S
    while os.path.lexists(path):
        left = deadline - monotonic()
        if left <= 0:
            raise Refused(
                f"nobody outside the sandbox has taken this up within {_PATIENCE_S:g} s",
                hint=AtTerminal("its driver is gone, or this worker has sent too much: see agentctl logs"),
            )
        watch.sleep(left)
