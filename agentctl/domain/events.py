"""The events of a task: past facts, one JSON object a line of `events.jsonl`."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import repeat

from agentctl.domain.states import Status
from agentctl.lean import Any, NamedTuple

TASK_CREATED = "task.created"
#: In the log of the task above: a sub-task was made; it was removed again before its worker was accepted.
SUBTASK_CREATED = "subtask.created"
SUBTASK_REMOVED = "subtask.removed"
QUEUED = "agent.queued"
STARTED = "agent.started"
BLOCKED = "agent.blocked"
RESUMED = "agent.resumed"
RETRYING = "agent.retrying"
#: A node has begun to carry it out.
PLACED = "agent.placed"
#: Another shim guards it from now on: the one before it was killed, while the worker ran on a node.
ADOPTED = "agent.adopted"
#: It was taken for lost, and its node has told its end after all.
LATE_EXIT = "agent.late_exit"
#: A later attempt has begun.
RETRIED = "agent.retried"
#: It was given back to the queue until its account may be used again.
PARKED = "agent.parked"
#: A usage window of its account is nearly used up.
NEAR_LIMIT = "agent.near_limit"
PAUSED = "agent.paused"
UNPAUSED = "agent.unpaused"
#: No output for `stallSeconds`; output again.
STALLED = "agent.stalled"
UNSTALLED = "agent.unstalled"
#: Its own processes have ended, and it waits for the workers that it started.
AWAITING_CHILDREN = "agent.awaiting_children"
CANCEL_REQUESTED = "agent.cancel_requested"
CANCEL_FAILED = "agent.cancel_failed"
COMPLETED = "agent.completed"
FAILED = "agent.failed"
CANCELLED = "agent.cancelled"
#: A person has removed it: the log is read as if it had never been, and its name is free.
REMOVED = "agent.removed"
ASKED = "interaction.requested"
ANSWERED = "interaction.responded"
EXPIRED = "interaction.expired"
MESSAGE_SENT = "message.sent"
RESULT_DECLARED = "result.declared"
#: A person allowed an agent that had failed too often to be started again.
BREAKER_CLOSED = "breaker.closed"
#: The queue of the task is held: nothing of it is started; it was let go.
QUEUE_HELD = "queue.held"
QUEUE_LET_GO = "queue.let_go"

#: A terminal status -> its event, and back.
END_EVENT = {Status.COMPLETED: COMPLETED, Status.FAILED: FAILED, Status.CANCELLED: CANCELLED}
END_STATUS = {event: status for status, event in END_EVENT.items()}

_ENCODER = json.JSONEncoder(separators=(",", ":"))

#: A decoded line: the object as the file has it.
Event = dict[str, Any]


class BadLine(NamedTuple):
    """A line that is not an event: its number in the file (from 1) and what is wrong with it."""

    seq: int
    problem: str


def make_event(
    ts: str, type_: str, task_id: str, by: str, payload: dict[str, Any], instance: str | None = None
) -> Event:
    """Return one event; `instance` is put into the envelope and, for `agent.*`, into the payload."""
    event: Event = {"ts": ts, "type": type_, "taskId": task_id}
    if instance is not None:
        event["agentInstance"] = instance
        payload = {"agentInstance": instance, **payload}
    event["by"] = by
    event["payload"] = payload
    return event


def encode(events: Iterable[Event]) -> bytes:
    """Return the lines of `events`, each ended by the newline that commits it."""
    return b"".join(_ENCODER.encode(event).encode() + b"\n" for event in events)


def decode(data: bytes, first_seq: int) -> Sequence[tuple[int, Event] | BadLine]:
    """Return (seq, event) for each line of `data`, which holds whole lines only; `BadLine` for what is not an event.

    One parse for all lines is 2 to 3 times as fast as one for each, so it is tried first.
    """
    try:
        events = json.loads(b"[" + data[:-1].replace(b"\n", b",") + b"]")
    except (ValueError, RecursionError):
        events = []
    if len(events) == data.count(b"\n") and are_events(events):
        return list(enumerate(events, first_seq))
    return [_decode_line(seq, line) for seq, line in enumerate(data.split(b"\n")[:-1], first_seq)]


def _decode_line(seq: int, line: bytes) -> tuple[int, Event] | BadLine:
    if not line:  # It is the cheapest to write; by the parser's error it would be the dearest to read.
        return BadLine(seq, "not JSON: an empty line")
    try:
        event = json.loads(line)
    except (ValueError, RecursionError) as error:
        return BadLine(seq, f"not JSON: {error}")
    return (seq, event) if are_events([event]) else BadLine(seq, "not an event: it lacks a type or a payload")


def about(data: bytes, instance: str, kinds: Collection[str]) -> Iterator[Event]:
    """Yield the events of these kinds about whoever had a name, from whole lines; hardly any other line is parsed."""
    needle = b'"agentInstance":"' + instance.encode() + b'"'
    at = data.find(needle)
    marks = [b'"type":"' + kind.encode() + b'"' for kind in kinds] if at >= 0 else []
    while at >= 0:
        start, end = data.rfind(b"\n", 0, at) + 1, data.index(b"\n", at)
        line = data[start:end]
        row = _decode_line(0, line) if any(mark in line for mark in marks) else None
        if row is not None and not isinstance(row, BadLine):
            event = row[1]
            if event["type"] in kinds and event.get("agentInstance") == instance:
                yield event
        at = data.find(needle, end)


def are_events(values: Sequence[Any]) -> bool:
    """Return whether decoded lines all have the form of an event; a call for each takes several times as long."""
    return set(map(type, values)) <= {dict} and all(
        set(map(type, map(dict.get, values, repeat(key), repeat(default)))) <= {type_} for key, default, type_ in _FORM
    )


#: The form of an event: each key, the default where it is missing, and the type of its value.
_FORM = (("type", None, str), ("payload", None, dict), ("agentInstance", "", str))
