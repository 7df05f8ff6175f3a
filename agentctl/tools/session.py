"""What one session's tools are bound to."""

from __future__ import annotations

import threading

from agentctl.errors import NotFound
from agentctl.tools.place import Place, Situation, Source
from agentctl.tools.started import Started


class Session:
    """The tools of one client, in the task that its first call found.

    Ids are names of one task: whatever is chosen elsewhere meanwhile (`agentctl use`, `new`, another client), the ids
    that this session has given out go on meaning the same workers.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._bound: Place | None = None
        # Of two first calls at once one makes the task, and both work in it.
        self._lock = threading.Lock()

    def place(self, *, create: bool = False) -> Place:
        """Return the place of this session: found by its first call, and looked for anew only if its task was removed.

        Args:
            create: Make a task where none is chosen, as a spawn does.

        Raises:
            NotFound: There is no such task.
        """
        with self._lock:
            if self._bound is None or not self._bound.task.exists:
                found = self._source.place(create=create)
                self._bound = Place(found.task, found.me, found.agents, Started())
            return self._bound

    def place_or_none(self) -> Place | None:
        """Return the place, or None where there is no task yet and nobody has said which it is."""
        try:
            return self.place()
        except NotFound:
            if self._source.is_named:
                raise
            return None

    def at(self, task_id: str) -> Place:
        """Return the place of a task in which this client, or one before it, has left something.

        Raises:
            NotFound: There is no such task.
        """
        with self._lock:
            if self._bound is not None and self._bound.task.id == task_id and self._bound.task.exists:
                return self._bound
        return self._source.at(task_id)

    def situation(self) -> Situation:
        """Look at how things stand, also where there is no task yet. This binds nothing."""
        with self._lock:
            bound = self._bound
        return bound.situation() if bound is not None and bound.task.exists else self._source.situation()
