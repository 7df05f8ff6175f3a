"""The fold of all logs of a tree of tasks: which workers were accepted, and how they ended."""

from __future__ import annotations

from collections.abc import Iterable

from agentctl.domain import events as ev
from agentctl.domain.events import BadLine, Event
from agentctl.domain.tree.breaker import End
from agentctl.domain.worker.projection import TaskView
from agentctl.lean import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime
else:
    try:
        from _datetime import datetime  # `datetime` has all of it a second time, in Python: 0.3 MB for each shim.
    except ImportError:
        from datetime import datetime


class TreeFacts:
    """What the logs of a tree say, task by task."""

    def __init__(self) -> None:
        self.views: dict[str, TaskView] = {}
        self._closed: list[End] = []

    def apply(self, task_id: str, rows: Iterable[tuple[int, Event] | BadLine]) -> None:
        """Fold in further rows of a task's log."""
        view = self.views.setdefault(task_id, TaskView())
        for row in rows:
            view.apply([row])
            if not isinstance(row, BadLine) and row[1]["type"] == ev.BREAKER_CLOSED:
                agent = row[1]["payload"].get("agent")
                self._closed.append(End(instant(row[1].get("ts")) or 0.0, str(agent)))

    @property
    def workers(self) -> int:
        """How many workers were accepted."""
        return sum(len(view.workers) for view in self.views.values())

    def ends(self) -> list[End]:
        """Return the ends of all agents, and the breakers that were closed; commands have no breaker."""
        found = list(self._closed)
        for view in self.views.values():
            for worker in view.workers.values():
                at = instant(worker.ended_at)
                if worker.is_terminal and worker.driver is not None and at is not None:
                    found.append(End(at, worker.agent, worker.status, worker.reason))
        return found


def instant(ts: object) -> float | None:
    """Return the time of an event in seconds since the epoch; None where it is not a time with a zone.

    >>> instant("1970-01-01T00:01:00.500Z"), instant("2026-11-22T01:00:00Z"), instant("2026-11-22")
    (60.5, 1795309200.0, None)
    """
    try:
        at = datetime.fromisoformat(ts)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return at.timestamp() if at.tzinfo is not None else None
