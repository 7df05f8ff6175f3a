"""The timeline of a task and the sub-tasks below it: a bar for each worker, what it used, and the critical path."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence

from agentctl.adapters.clock import iso_of
from agentctl.adapters.eventlog import LogReader
from agentctl.adapters.taskdir import TaskDir
from agentctl.domain.events import END_EVENT, Event, make_event
from agentctl.domain.timeline.critical_path import Stretch, critical_path
from agentctl.domain.timeline.timeline import MOST_CHANGES, Bar, BarId, History, in_order
from agentctl.domain.tree.budget import Spent, total
from agentctl.domain.worker.projection import TaskView
from agentctl.errors import AtTerminal, StorageError
from agentctl.lean import TYPE_CHECKING, NamedTuple
from agentctl.operations.show.current_state import read_task
from agentctl.operations.where.subtasks_below import subtree
from agentctl.operations.where.task_config import usable_config
from agentctl.supervision.account.ledger import read_spent

if TYPE_CHECKING:
    from agentctl.domain.documents.views import TaskTimeline, TimelineWorker, WorkerReference
    from agentctl.errors import Step


class TimelineRow(NamedTuple):
    """A worker's bar, and what it has used; a command uses nothing that is counted."""

    bar: Bar
    spent: Spent
    is_critical: bool

    def to_json(self) -> TimelineWorker:
        """Return the row that `timeline --json` prints."""
        bar = self.bar
        return {
            **_id_json(bar.id),
            "agent": bar.agent,
            "command": bar.command,
            "status": bar.status,
            "reason": bar.reason,
            "depth": bar.depth,
            "parent": None if bar.parent is None else _id_json(bar.parent),
            "after": [_id_json(one) for one in bar.after],
            "from": iso_of(bar.began),
            "startedAt": None if bar.started is None else iso_of(bar.started),
            "to": iso_of(bar.until),
            "open": bar.is_open,
            "attempts": bar.attempts,
            "critical": self.is_critical,
            **self.spent.figures(),
            "pieces": [
                {"shade": piece.shade, "attempt": piece.attempt, "from": iso_of(piece.began), "to": iso_of(piece.until)}
                for piece in bar.pieces
            ],
        }


class Timeline(NamedTuple):
    """The rows, each after the worker that started it, and the critical path in the order of time."""

    task_id: str
    title: str
    rows: Sequence[TimelineRow]
    path: Sequence[Stretch]
    #: From the first event to the last end, in seconds since 1970; to now, if a worker has not ended.
    began: float
    until: float
    warnings: Sequence[Step]
    #: What could not be read of workers that have not ended: how they are is not known.
    unreadable: Sequence[StorageError] = ()

    @property
    def is_open(self) -> bool:
        """Whether a worker has not ended."""
        return any(row.bar.is_open for row in self.rows)

    @property
    def spent(self) -> Spent:
        """What all workers have used."""
        return total(row.spent for row in self.rows)

    def to_json(self) -> TaskTimeline:
        """Return what `timeline --json` prints."""
        return {
            "taskId": self.task_id,
            "title": self.title,
            "from": iso_of(self.began),
            "to": iso_of(self.until),
            "open": self.is_open,
            "total": {**self.spent.figures(), "workers": len(self.rows)},
            "criticalPath": [
                {**_id_json(one.bar), "from": iso_of(one.began), "to": iso_of(one.until), "because": one.because}
                for one in self.path
            ],
            "workers": [row.to_json() for row in self.rows],
        }


def read_timeline(task: TaskDir, *, now: float | None = None) -> Timeline:
    """Return the timeline of a task and of the sub-tasks below it.

    Args:
        now: The end of open bars, in seconds since 1970; None means the current time.
    """
    tasks = {one.id: one for one in subtree(task)}
    unreadable: list[StorageError] = []
    histories = _histories(tasks.values(), unreadable)
    at = time.time() if now is None else now
    at = max([at, *(history.last(at) for history in histories)])  # The clock may have been set back meanwhile.
    bars = in_order(bar for history in histories for bar in history.bars(at))
    path = critical_path(bars)
    critical = {one.bar for one in path}
    rows = [TimelineRow(bar, _spent(tasks, bar), bar.id in critical) for bar in bars]
    began, until = min((bar.began for bar in bars), default=at), max((bar.until for bar in bars), default=at)
    title, warnings = usable_config(task).title, list(_warnings(histories))
    return Timeline(task.id, title, rows, path, began, until, warnings, unreadable)


def _histories(tasks: Iterable[TaskDir], unreadable: list[StorageError]) -> list[History]:
    found, left = [], MOST_CHANGES
    for task in tasks:
        found.append(_history(task, left, unreadable))
        left -= found[-1].changes
    return found


def _history(task: TaskDir, most: int, unreadable: list[StorageError]) -> History:
    """Return what the log of a task says, with the ends that are proven but could not be recorded."""
    view, _ = read_task(task)
    unreadable += [one.unreadable for one in view.workers.values() if one.unreadable and not one.is_terminal]
    history = History(task.id, most)
    history.apply(LogReader(task.events).rows())
    history.apply(enumerate(_unrecorded(view, history)))
    return history


def _unrecorded(view: TaskView, history: History) -> Iterator[Event]:
    for name in history.open_bars():
        worker = view.workers.get(name)
        if worker is not None and worker.is_terminal:
            reason = {"reason": worker.reason} if worker.reason else {}
            kind, ended = END_EVENT[worker.status], worker.ended_at or ""
            yield make_event(ended, kind, history.task_id, "agentctl", reason, instance=name)


def _spent(tasks: dict[str, TaskDir], bar: Bar) -> Spent:
    task_id, instance = bar.id
    return Spent() if bar.driver is None else read_spent(tasks[task_id].worker(instance))


def _warnings(histories: Sequence[History]) -> Iterator[Step]:
    for history in histories:
        if history.bad_lines:
            yield AtTerminal(
                f"{history.bad_lines} lines of the log of {history.task_id} cannot be read: agentctl doctor"
            )
        if history.is_cut:
            yield f"the log of {history.task_id} is too long: the timeline leaves out its end"


def _id_json(one: BarId) -> WorkerReference:
    return {"taskId": one[0], "agentInstance": one[1]}
