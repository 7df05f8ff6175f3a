"""Tells in the log of the task that a worker has begun on a node."""

from __future__ import annotations

from agentctl.adapters import eventlog
from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import read_quietly
from agentctl.adapters.taskdir import LaunchDir, WorkerDir
from agentctl.domain import events as ev


def tell_placed(worker: WorkerDir, launch: LaunchDir, runner: str) -> bool:
    """Append the event, unless the log has it; return whether a node has begun it."""
    claim = read_quietly(launch.claim)
    if not claim or claim.get("by") == "head":
        return False
    if not any(event["payload"].get("launch") == launch.id for event in _placements(worker)):
        payload = {"launch": launch.id, "runner": runner, "node": claim.get("node"), "job": claim.get("job")}
        event = ev.make_event(now_iso(), ev.PLACED, worker.task.id, "agentctl", payload, worker.instance)
        eventlog.append(worker.task.events, [event])
    return True


def _placements(worker: WorkerDir) -> list[ev.Event]:
    return list(eventlog.events_about(worker.task.events, worker.instance, (ev.PLACED,)))
