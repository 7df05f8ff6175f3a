"""The fold of all logs of a tree of tasks: who was accepted, when they were at work, how they ended."""

from __future__ import annotations

from collections.abc import Iterable

from agentctl.domain import events as ev
from agentctl.domain.breaker import End
from agentctl.domain.events import BadLine, Event
from agentctl.domain.projection import TaskView, WorkerView
from agentctl.domain.states import Reason, Status
from agentctl.domain.worktime import Span, covered_s, instant


class TreeFacts:
    """What the logs tell of a tree, task by task."""

    def __init__(self) -> None:
        self.views: dict[str, TaskView] = {}
        #: When each worker worked: since when it does now, and the spans that are over.
        self._since: dict[tuple[str, str], float] = {}
        self._spans: dict[tuple[str, str], list[Span]] = {}
        self._closed: list[End] = []

    def apply(self, task_id: str, rows: Iterable[tuple[int, Event] | BadLine]) -> None:
        """Fold further rows of a task's log in."""
        view = self.views.setdefault(task_id, TaskView())
        for row in rows:
            view.apply([row])
            if isinstance(row, BadLine):
                continue
            event = row[1]
            worker = view.workers.get(event.get("agentInstance", ""))
            if worker is not None:
                self._note_work(task_id, worker, event)
            elif event["type"] == ev.BREAKER_CLOSED:
                agent = event["payload"].get("agent")
                self._closed.append(End(instant(event.get("ts")) or 0.0, str(agent)))

    def _note_work(self, task_id: str, worker: WorkerView, event: Event) -> None:
        """Begin or end a span of work: who waits for an answer, or is paused, is not at work."""
        key, at = (task_id, worker.instance), instant(event.get("ts"))
        if at is None:
            return
        if event["type"] == ev.RETRYING and key in self._since:
            self._spans.setdefault(key, []).append(Span(self._since[key], at))
            self._since[key] = at + _delay(event)
        is_at_work = worker.status is Status.RUNNING and not worker.paused
        if is_at_work:
            self._since.setdefault(key, at)
        elif key in self._since:
            since = self._since.pop(key)
            if worker.reason != Reason.LOST:  # Nobody saw that end: it may have been told days later.
                self._spans.setdefault(key, []).append(Span(since, at))

    @property
    def workers(self) -> int:
        """How many workers were accepted."""
        return sum(len(view.workers) for view in self.views.values())

    def wall_s(self, now: float) -> float:
        """Return how long at least one worker was at work."""
        return covered_s(span for key in {*self._spans, *self._since} for span in self._of(key, now))

    def wall_of(self, task_id: str, now: float, instance: str | None = None) -> float:
        """Return how long a worker was at work, or at least one of a task."""
        keys = [key for key in {*self._spans, *self._since} if key[0] == task_id and instance in (None, key[1])]
        return covered_s(span for key in keys for span in self._of(key, now))

    def _of(self, key: tuple[str, str], now: float) -> list[Span]:
        spans = self._spans.get(key, [])
        return [*spans, Span(self._since[key], now)] if key in self._since else spans

    def ends(self) -> list[End]:
        """Return the ends of all agents, and the breakers that were closed; commands have no breaker."""
        found = list(self._closed)
        for view in self.views.values():
            for worker in view.workers.values():
                at = instant(worker.ended_at)
                if worker.is_terminal and worker.driver is not None and at is not None:
                    found.append(End(at, worker.agent, worker.status, worker.reason))
        return found


def _delay(event: Event) -> float:
    """Return how long a worker waits before its next attempt."""
    delay = event["payload"].get("delaySeconds")
    return delay if isinstance(delay, (int, float)) and 0 <= delay < 86_400 else 0.0
