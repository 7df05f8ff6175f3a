"""A session: the tools of one client, bound to one task."""

from __future__ import annotations

import threading

from agentctl.errors import NotFound
from agentctl.tools.scope import Scope, ScopeSource, Situation, StartedWorkers


class Session:
    """The tools of one client, in the task that its first call found.

    Ids are names in one task. So whichever task is chosen elsewhere meanwhile (`agentctl use`, `new`, another client),
    the ids that this session has given out keep meaning the same workers.
    """

    def __init__(self, source: ScopeSource) -> None:
        self._source = source
        self._bound: Scope | None = None
        # If two first calls come at the same time, one makes the task, and both work in it.
        self._lock = threading.Lock()

    def scope(self, *, create: bool = False) -> Scope:
        """Return the scope of this session: found by its first call, and again only if its task was removed.

        Args:
            create: Make a task if none is chosen, as a spawn does.

        Raises:
            NotFound: There is no such task.
        """
        with self._lock:
            if self._bound is None or not self._bound.task.exists:
                found = self._source.scope(create=create)
                self._bound = Scope(found.task, found.me, found.agents, StartedWorkers())
            return self._bound

    def scope_or_none(self) -> Scope | None:
        """Return the scope, or None if there is no task yet and none was named."""
        try:
            return self.scope()
        except NotFound:
            if self._source.is_named:
                raise
            return None

    def at(self, task_id: str) -> Scope:
        """Return the scope of a task in which this client, or an earlier one, has begun a call.

        Raises:
            NotFound: There is no such task.
        """
        with self._lock:
            if self._bound is not None and self._bound.task.id == task_id and self._bound.task.exists:
                return self._bound
        return self._source.at(task_id)

    def situation(self) -> Situation:
        """Return the facts for the descriptions of the tools, even if there is no task yet; bind nothing."""
        with self._lock:
            bound = self._bound
        return bound.situation() if bound is not None and bound.task.exists else self._source.situation()
