"""What of a worker cannot be read: a view shows the others, and of this one why it is not known how it is."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator

from agentctl.adapters.files import as_storage_error
from agentctl.domain.worker.projection import WorkerView
from agentctl.errors import AgentctlError, StorageError


@contextlib.contextmanager
def noting_unreadable(worker: WorkerView) -> Iterator[None]:
    """Note what cannot be read of a worker; any other error is one of the whole look."""
    try:
        yield
    except (AgentctlError, OSError) as error:
        note_unreadable(worker, error)


def note_unreadable(worker: WorkerView, error: AgentctlError | OSError) -> None:
    """Note an error of a look at a worker's files, or raise it where it says nothing of the kind."""
    worker.unreadable = unreadable_problem(error)


def unreadable_problem(error: AgentctlError | OSError) -> StorageError:
    """Return what cannot be read, by the error of a look; an error of any other kind is raised."""
    found = as_storage_error(error)
    if found is None:
        raise error
    return found


def check_any_known(awaited: Collection[WorkerView]) -> None:
    """Raise what cannot be read if nobody else is waited for: the end of such a worker would never be seen.

    Args:
        awaited: Those that have not ended.
    """
    unreadable = [worker.unreadable for worker in awaited if worker.unreadable is not None]
    if unreadable and len(unreadable) == len(awaited):
        raise unreadable[0]


def check_all_known(problems: Collection[StorageError]) -> None:
    """Raise what could not be read, after all that could be was shown."""
    if problems:
        first = next(iter(problems))
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise StorageError(f"{first.message}{more}", hint=first.steps)
