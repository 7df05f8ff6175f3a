"""The fold of all logs of a tree of tasks: who was accepted, and how they ended."""

from __future__ import annotations

import re
from collections.abc import Iterable

from agentctl.domain import events as ev
from agentctl.domain.breaker import End
from agentctl.domain.events import BadLine, Event
from agentctl.domain.projection import TaskView

#: As agentctl writes it: RFC 3339 in UTC.
_INSTANT = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d(?:\.\d+)?)Z")


class TreeFacts:
    """What the logs tell of a tree, task by task."""

    def __init__(self) -> None:
        self.views: dict[str, TaskView] = {}
        self._closed: list[End] = []

    def apply(self, task_id: str, rows: Iterable[tuple[int, Event] | BadLine]) -> None:
        """Fold further rows of a task's log in."""
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
    """Return the time of an event in seconds since the epoch; None where it tells none.

    >>> instant("1970-01-01T00:01:00.500Z"), instant("2026-11-22T01:00:00Z"), instant("yesterday")
    (60.5, 1795309200.0, None)
    """
    found = _INSTANT.fullmatch(ts) if isinstance(ts, str) else None
    if found is None:
        return None
    year, month, day, hour, minute = map(int, found.groups()[:5])
    return ((_day_number(year, month, day) * 24 + hour) * 60 + minute) * 60 + float(found[6])


def _day_number(year: int, month: int, day: int) -> int:
    """Return how many days after 1970-01-01 a day is; a year counts from March, so that its leap day comes last."""
    year, month = (year, month - 3) if month > 2 else (year - 1, month + 9)
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 719_469
