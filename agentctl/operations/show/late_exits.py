"""Workers that were taken for lost and whose node has told their end after all: that is noted, and changes no end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from agentctl.adapters import eventlog
from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import read_known
from agentctl.adapters.taskdir import TaskDir
from agentctl.domain import events as ev
from agentctl.domain.states import Reason, Status
from agentctl.domain.worker.projection import WorkerView
from agentctl.errors import AgentctlError
from agentctl.supervision.worker.placed import launch_of


def note_late_exits(task: TaskDir, workers: Iterable[WorkerView]) -> bool:
    """Append an event for each lost worker whose node has told its end since; return whether there was one."""
    lost = [worker for worker in workers if worker.runner and worker.reason == Reason.LOST and worker.late_exit is None]
    return sum(_note(task, worker.instance) for worker in lost) > 0


def _note(task: TaskDir, instance: str) -> bool:
    launch = launch_of(task.worker(instance))
    ended = read_known(launch.ended) if launch is not None and launch.ended.exists() else {}
    if launch is None or ended.get("status") not in tuple(Status):
        return False
    found = {key: ended[key] for key in ("status", "reason", "exitCode", "signal") if ended.get(key) is not None}
    payload = {"launch": launch.id, **found}
    event = ev.make_event(now_iso(), ev.LATE_EXIT, task.id, "agentctl", payload, instance)
    with contextlib.suppress(AgentctlError, OSError):
        return eventlog.append(task.events, [event], unless=lambda fd: _is_noted(fd, instance)) is not None
    return False


def _is_noted(fd: int, instance: str) -> bool:
    return bool(eventlog.events_in(fd, instance, (ev.LATE_EXIT,), 0))
