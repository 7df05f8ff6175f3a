"""Requests to a worker's guardian: on disk, or in memory while the disk refuses them, where they count all the same."""

from __future__ import annotations

from collections.abc import Callable

from agentctl.adapters.taskdir import WorkerDir
from agentctl.errors import AgentctlError
from agentctl.lean import Any
from agentctl.supervision.worker import deferred

Body = dict[str, Any]


class DeferrableRequest:
    """Requests of one kind.

    Args:
        kind: Under which one waits in memory (`deferred`).
        write: Writes one to the disk, as far as it is not there yet.
        combined: Returns what two of them ask for together, the earlier one first.
    """

    def __init__(
        self, kind: str, write: Callable[[WorkerDir, Body], None], combined: Callable[[Body, Body], Body]
    ) -> None:
        self.kind, self._write, self._combined = kind, write, combined

    def put(self, worker: WorkerDir, body: Body) -> AgentctlError | OSError | None:
        """Write a request down, together with one that waits already.

        Returns:
            Why the disk refuses it, if it waits in memory.

        Raises:
            FileNotFoundError, NotADirectoryError: The worker's folder was removed, which ends it without a request.
            AgentctlError, OSError: The disk refuses it, and so does memory.
        """
        before = self.waiting(worker)
        wanted = body if before is None else self._combined(before, body)
        try:
            self._write(worker, wanted)
        except (FileNotFoundError, NotADirectoryError):
            raise
        except (AgentctlError, OSError) as problem:
            if wanted != before:
                self._keep(worker, wanted, problem)
            return problem
        self._forget(worker, before)
        return None

    def _keep(self, worker: WorkerDir, body: Body, problem: AgentctlError | OSError) -> None:
        try:
            deferred.defer_request(worker, self.kind, body)
        except (AgentctlError, OSError):
            raise problem from None

    def waiting(self, worker: WorkerDir) -> Body | None:
        """Return the request that waits in memory; None if there is none."""
        return deferred.request(worker, self.kind)

    def write_waiting(self, worker: WorkerDir) -> None:
        """Write the request that waits in memory to the disk, if there is one.

        Raises:
            AgentctlError, OSError: The disk still refuses it.
        """
        body = self.waiting(worker)
        if body is not None:
            self._write(worker, body)
            self._forget(worker, body)

    def _forget(self, worker: WorkerDir, body: Body | None) -> None:
        """Remove what waits in memory, if it is this one: a newer one is not on disk."""
        if body is not None:
            deferred.forget_request(worker, self.kind, body)
