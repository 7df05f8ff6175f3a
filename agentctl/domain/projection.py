"""The fold of a task's events into what is so: the only answer to "what is this worker's status?"."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from agentctl.domain import events as ev
from agentctl.domain.events import BadLine, Event
from agentctl.domain.names import is_name
from agentctl.domain.states import MOVES, TERMINAL, Status


class Deliverable(NamedTuple):
    """An end or a block that a wait gives to its consumer."""

    seq: int
    instance: str
    status: Status


class WorkerView:
    """One worker as its events tell it."""

    __slots__ = (
        "agent", "attempt", "block_seq", "command", "depth", "duration_s", "end_seq", "ended_at", "exit_code",
        "instance",
        "parent", "paused", "pid", "queued_at", "reason", "shim_pid", "signal", "started_at", "status", "survivors",
    )  # fmt: skip

    def __init__(self, instance: str) -> None:
        self.instance = instance
        self.agent = "command"
        self.command = ""
        self.status = Status.QUEUED
        self.reason: str | None = None
        self.parent: str | None = None
        self.depth = 0
        self.attempt = 1
        self.paused = False
        self.pid: int | None = None
        self.shim_pid: int | None = None
        self.queued_at: str | None = None
        self.started_at: str | None = None
        self.ended_at: str | None = None
        self.exit_code: int | None = None
        self.signal: str | None = None
        self.duration_s: float | None = None
        self.survivors: list[Any] = []
        self.end_seq: int | None = None
        self.block_seq: int | None = None

    @property
    def is_terminal(self) -> bool:
        """Tell whether it has ended."""
        return self.status in TERMINAL

    def move(self, status: Status) -> bool:
        """Take a status if the table of moves allows it; tell whether it did."""
        if status not in MOVES[self.status]:
            return False
        self.status = status
        return True


class TaskView:
    """All workers of a task, in the order in which they were accepted, and the lines that could not be read."""

    def __init__(self) -> None:
        self.workers: dict[str, WorkerView] = {}
        self.damage: list[BadLine] = []

    def apply(self, rows: Iterable[tuple[int, Event] | BadLine]) -> None:
        """Fold further rows of the log in; what an event cannot mean here is ignored."""
        for row in rows:
            if isinstance(row, BadLine):
                self.damage.append(row)
                continue
            seq, event = row
            fold = _FOLDS.get(event["type"])
            instance = event.get("agentInstance")
            if fold is None or not instance:
                continue
            worker = self.workers.get(instance)
            if worker is None:
                if not is_name(instance):  # It would be a path out of the task.
                    self.damage.append(BadLine(seq, f"{instance!r} is no name of a worker"))
                    continue
                worker = self.workers[instance] = WorkerView(instance)
            fold(worker, seq, event)

    def deliverables(self) -> list[Deliverable]:
        """Return every end, and every block that still holds, in the order of the log."""
        found = []
        for worker in self.workers.values():
            if worker.end_seq is not None:
                found.append(Deliverable(worker.end_seq, worker.instance, worker.status))
            elif worker.block_seq is not None and worker.status is Status.BLOCKED:
                found.append(Deliverable(worker.block_seq, worker.instance, worker.status))
        found.sort()
        return found

    def descendants(self, instance: str) -> list[str]:
        """Return the workers that `instance` started, and theirs, nearest first."""
        found = [instance]
        for name in found:
            found += [worker.instance for worker in self.workers.values() if worker.parent == name]
        return found[1:]


def _told(told: Mapping[str, Any], key: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
    """Return what an event tells under `key`; the default where it tells nothing that could be meant."""
    value = told.get(key, default)
    return value if isinstance(value, kind) else default


def _queued(worker: WorkerView, seq: int, event: Event) -> None:
    payload = event["payload"]
    agent = _told(payload, "agent", str, "")
    worker.queued_at = _told(event, "ts", str)
    worker.agent = agent if is_name(agent) else worker.agent
    worker.command = _told(payload, "command", str, "")
    worker.parent = _told(payload, "parent", str)
    worker.depth = _told(payload, "depth", int, 0)


def _started(worker: WorkerView, seq: int, event: Event) -> None:
    if worker.move(Status.RUNNING):
        worker.started_at = _told(event, "ts", str)
        worker.pid = _told(event["payload"], "pid", int)
        worker.shim_pid = _told(event["payload"], "shimPid", int)


def _retrying(worker: WorkerView, seq: int, event: Event) -> None:
    if not worker.is_terminal:
        worker.attempt = _told(event["payload"], "attempt", int, worker.attempt + 1)


def _blocked(worker: WorkerView, seq: int, event: Event) -> None:
    if worker.move(Status.BLOCKED):
        worker.block_seq = seq


def _resumed(worker: WorkerView, seq: int, event: Event) -> None:
    if worker.status is Status.BLOCKED:
        worker.move(Status.RUNNING)


def _paused(worker: WorkerView, seq: int, event: Event) -> None:
    worker.paused = event["type"] == ev.PAUSED and not worker.is_terminal


def _cancel_failed(worker: WorkerView, seq: int, event: Event) -> None:
    if not worker.is_terminal:
        survivors = _told(event["payload"], "survivors", list, [])
        worker.survivors = [one for one in survivors if isinstance(one, dict)]


def _ended(worker: WorkerView, seq: int, event: Event) -> None:
    if not worker.move(ev.END_STATUS[event["type"]]):
        return
    payload = event["payload"]
    worker.end_seq = seq
    worker.ended_at = _told(event, "ts", str)
    worker.reason = _told(payload, "reason", str)
    worker.exit_code = _told(payload, "exitCode", int)
    worker.signal = _told(payload, "signal", str)
    worker.duration_s = _told(payload, "durationSeconds", (int, float))
    worker.paused = False
    worker.survivors = []


_FOLDS: dict[str, Callable[[WorkerView, int, Event], None]] = {
    ev.QUEUED: _queued,
    ev.STARTED: _started,
    ev.RETRYING: _retrying,
    ev.BLOCKED: _blocked,
    ev.RESUMED: _resumed,
    ev.PAUSED: _paused,
    ev.UNPAUSED: _paused,
    ev.CANCEL_FAILED: _cancel_failed,
    ev.COMPLETED: _ended,
    ev.FAILED: _ended,
    ev.CANCELLED: _ended,
}
