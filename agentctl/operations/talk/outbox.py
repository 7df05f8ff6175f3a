"""The one way out for a worker in a sandbox that lets it write nothing of its task: small files in its outbox.

Its driver's program, outside, takes each up as what it is: an entry of this one worker, and nothing else. Nobody
believes these files for anything more, so a worker that fills them with lies gets no further than `report` does.
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
from agentctl.errors import Refused, StorageError, UsageError

#: The longest file that is taken up.
LONGEST = 1 << 16
_WALLED = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
#: How long a worker waits until its driver has taken an entry up.
_PATIENCE_S = 20.0


def is_walled(worker: WorkerDir, error: Exception) -> bool:
    """Tell whether a write failed because a sandbox lets this process write nothing of its worker but the outbox."""
    cause = error if isinstance(error, OSError) else error.__cause__
    is_refused = isinstance(cause, OSError) and cause.errno in _WALLED
    return is_refused and worker.outbox.is_dir() and os.access(worker.outbox, os.W_OK)


def deliver(worker: WorkerDir, entry: Mapping[str, Any]) -> None:
    """Put an entry into the outbox, and return once it was taken up."""
    with delivered(worker, entry):
        pass


@contextlib.contextmanager
def delivered(worker: WorkerDir, entry: Mapping[str, Any]) -> Iterator[None]:
    """Put an entry into the outbox; once it was taken up the body runs, and the driver sees that its sayer lives.

    Raises:
        UsageError: It is too long.
        Refused: Nobody takes it up.
    """
    data = to_json(entry)
    if len(data) > LONGEST:
        raise UsageError(f"this is too long to be said from within a sandbox: {len(data)} bytes; at most {LONGEST}")
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
                f"nobody outside of the sandbox has taken this up within {_PATIENCE_S:g} s",
                hint="its driver is gone, or this worker has said too much: agentctl logs tells",
            )
        watch.sleep(left)
