"""Where a worker on a node is, or what keeps it from getting there: by its stand-in, its node and its engine."""

from __future__ import annotations

from collections.abc import Mapping

from agentctl.adapters.files import read_known
from agentctl.domain import events as ev
from agentctl.operations.show.evidence import (
    Part,
    Statement,
    TypedCommand,
    WayOut,
    changed_at,
    evidence_fields,
    file_says,
    process_says,
    shown,
)
from agentctl.operations.show.worker_facts import WorkerFacts
from agentctl.supervision.worker.placed import launch_of


def node_part(facts: WorkerFacts) -> Part:
    """Return where the worker is."""
    launch = launch_of(facts.worker_dir)
    if launch is None:
        return [Statement("It is about to be given to its engine.", process_says(facts.leader(), _STAND_IN))], []
    claim = read_known(launch.claim)
    placed: Mapping[str, object] = facts.row.get("placement") or {}
    evidence = [
        *process_says(facts.leader(), _STAND_IN),
        file_says(launch.handle, evidence_fields(read_known(launch.handle), "job", "submissions", "engine", "problem")),
    ]
    cancel = WayOut("a cancel", facts.command("cancel", facts.name))
    if not claim:
        return [Statement(_why_not_there(placed), evidence)], [WayOut("its turn there", _look(placed)), cancel]
    evidence += [
        file_says(launch.claim, evidence_fields(claim, "node", "job", "at")),
        changed_at(launch.heartbeat, "its sign of life"),
        *facts.event(ev.PLACED, "node", "job"),
    ]
    return [Statement(_how_there(placed, shown(claim.get("node"))), evidence)], [*_ways_there(placed), cancel]


_STAND_IN = "its stand-in"


def _why_not_there(placed: Mapping[str, object]) -> str:
    runner = shown(placed.get("runner"))
    if placed.get("problem"):
        return f"{runner} has not taken it yet: {shown(placed['problem'])}. The request is repeated."
    if placed.get("state") == "unknown":
        return (
            f"{runner} does not answer ({shown(placed.get('reason') or 'no reason given')}):"
            " it is unknown where the worker is."
        )
    if placed.get("state") == "running":
        return f"{runner} has given it a node, and it waits for a slot here (submitAhead)."
    words = shown(placed.get("words") or "no answer yet")
    why = f", because of {shown(placed['reason'])}" if placed.get("reason") else ""
    return f"It waits in the queue of {runner}: {words}{why}."


def _how_there(placed: Mapping[str, object], node: str) -> str:
    runner, state = shown(placed.get("runner")), placed.get("state")
    if placed.get("problem"):
        return f"It runs on {node}; but {shown(placed['problem'])}."
    if state == "unknown":
        return f"It runs on {node}, as far as is known: {runner} does not answer ({shown(placed.get('reason') or '')})."
    if state in ("ended", "dropped", "absent"):
        words = shown(placed.get("words") or "that there is no such job")
        return f"{runner} says {words}, but {node} has reported no end: it counts as lost if the node stays silent."
    return f"It runs on {node}, where a shim guards it; what is known here comes from that shim."


def _ways_there(placed: Mapping[str, object]) -> list[WayOut]:
    return [WayOut("its own end")] if placed.get("state") in (None, "running", "queued") else []


def _look(placed: Mapping[str, object]) -> TypedCommand | None:
    return TypedCommand("squeue --me") if placed.get("runner") == "slurm" else None
