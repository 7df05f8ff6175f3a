"""When a shim writes down what waits in memory because the disk refused it, and what the shim says meanwhile."""

from __future__ import annotations

import contextlib

from agentctl.adapters.taskdir import WorkerDir
from agentctl.errors import AgentctlError
from agentctl.lean import Any
from agentctl.supervision.worker import cancel_request, deferred, pause_request
from agentctl.supervision.worker.deferrable import DeferrableRequest


class Deferral:
    """What a disk refuses of one worker."""

    def __init__(self, worker: WorkerDir) -> None:
        self._worker = worker
        self._said: dict[str, Any] = {}

    def defers_nothing(self) -> bool:
        """Return whether the disk refuses nothing, and nothing may wait in memory."""
        return not self._said and not deferred.are_any()

    def look(self, **standing: object) -> None:
        """Write requests down if the disk takes them by now; else say why not, and with it that they were seen.

        Args:
            standing: What else is the case, for those who cannot read it from the log now.
        """
        if self.defers_nothing():
            return
        problem = self._problem_of(cancel_request.REQUEST) or self._problem_of(pause_request.REQUEST)
        if problem is not None:
            self.say(problem, **standing)
        elif self._said:
            self._said = {}
            deferred.unsay(self._worker)

    def say(self, problem: object, **standing: object) -> None:
        """Say what the disk refuses; where memory refuses that too, this shim still knows it."""
        said = {"problem": str(problem), **standing}
        if said != self._said:
            with contextlib.suppress(AgentctlError, OSError):
                deferred.say(self._worker, said)
                self._said = said

    def _problem_of(self, request: DeferrableRequest) -> AgentctlError | OSError | None:
        try:
            request.write_waiting(self._worker)
        except (AgentctlError, OSError) as problem:
            return problem
        return None
