"""The fold of a task's events into what is so: the only answer to "what is this worker's status?"."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from agentctl.domain import events as ev
from agentctl.domain.events import BadLine, Event
from agentctl.domain.states import MOVES, TERMINAL, Status


class Deliverable(NamedTuple):
    """An end or a block that a wait gives to its consumer."""

    seq: int
    instance: str
    status: Status


class WorkerView:
    """One worker as its events tell it."""

    __slots__ = (
        "agent", "attempt", "block_seq", "command", "depth", "duration_s", "end_seq", "ended_at", "exit_code", "instance",
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


def _queued(worker: WorkerView, seq: int, event: Event) -> None:
    payload = event["payload"]
    worker.queued_at = event.get("ts")
    worker.agent = payload.get("agent", worker.agent)
    worker.command = payload.get("command", "")
    worker.parent = payload.get("parent")
    worker.depth = payload.get("depth", 0)


def _started(worker: WorkerView, seq: int, event: Event) -> None:
    if worker.move(Status.RUNNING):
        worker.started_at = event.get("ts")
        worker.pid = event["payload"].get("pid")
        worker.shim_pid = event["payload"].get("shimPid")


def _retrying(worker: WorkerView, seq: int, event: Event) -> None:
    if not worker.is_terminal:
        worker.attempt = event["payload"].get("attempt", worker.attempt + 1)


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
        worker.survivors = event["payload"].get("survivors", [])


def _ended(worker: WorkerView, seq: int, event: Event) -> None:
    if not worker.move(ev.END_STATUS[event["type"]]):
        return
    payload = event["payload"]
    worker.end_seq = seq
    worker.ended_at = event.get("ts")
    worker.reason = payload.get("reason")
    worker.exit_code = payload.get("exitCode")
    worker.signal = payload.get("signal")
    worker.duration_s = payload.get("durationSeconds")
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
