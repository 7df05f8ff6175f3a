"""Decides a worker's end, once, and publishes it.

`exit.json` is the decision: it is created whole or not at all, so that only one of two deciders wins. The event comes
after it. A process that finds the decision without its event appends the event: it copies the decision, and makes none.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Mapping, Sequence
from functools import partial

from agentctl.adapters import eventlog
from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import create_whole, read_json, set_aside, storage_errors, to_json
from agentctl.adapters.locks import is_alive_held, locked
from agentctl.adapters.signals import signal
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.domain import events as ev
from agentctl.domain.states import Reason, Status
from agentctl.domain.text.numbers import finite
from agentctl.errors import AtTerminal, Damaged, StorageError
from agentctl.lean import TYPE_CHECKING, Any, NamedTuple
from agentctl.supervision.worker import deferred

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import RefusedByDisk

_TOLD = ("reason", "exitCode", "signal", "message", "lastLine", "durationSeconds", "attempt")
#: The fields of a decision by their names in the file.
_FIELDS = {
    "status": "status", "reason": "reason", "by": "by", "exitCode": "exit_code", "signal": "signal",
    "message": "message", "lastLine": "last_line", "startedAt": "started_at", "endedAt": "ended_at",
    "durationSeconds": "duration_s", "attempt": "attempt", "swept": "swept", "kept": "kept",
    "uncollected": "uncollected", "usage": "usage", "worked": "worked", "unguarded": "unguarded",
}  # fmt: skip
#: The type of each field that is there.
_KINDS: Mapping[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("reason", "by", "signal", "message", "lastLine", "startedAt", "endedAt"), str),
    **dict.fromkeys(("exitCode", "attempt"), int),
    "durationSeconds": (int, float),
    **dict.fromkeys(("swept", "kept", "uncollected"), list),
    **dict.fromkeys(("usage", "worked"), dict),
    "unguarded": bool,
}


class Decision(NamedTuple):
    """How a worker ended, as exit.json says it: what was decided, and what was seen of the exit."""

    status: Status
    #: A `Reason`, or any text in a file that a newer version wrote.
    reason: str | None = None
    by: str = "agentctl"
    exit_code: int | None = None
    signal: str | None = None
    message: str | None = None
    #: Of a failure: what it wrote last, in one line.
    last_line: str | None = None
    started_at: str | None = None
    #: None until it is decided.
    ended_at: str | None = None
    duration_s: float | None = None
    attempt: int = 1
    #: What the sweep after the leader ended, or a cancel had to kill: [{pid, command}].
    swept: Sequence[dict[str, Any]] = ()
    #: What `--keep-children` left alive.
    kept: Sequence[dict[str, Any]] = ()
    #: The children that outlived it: `task/instance`.
    uncollected: Sequence[str] = ()
    usage: dict[str, float] | None = None
    #: When it was at work, over all of its attempts: {boot, spans}.
    worked: Mapping[str, Any] | None = None
    #: Its shim was gone, and the machine was not restarted since: see `domain.worker.ends.HIDDEN`.
    unguarded: bool | None = None

    def now(self) -> Decision:
        """Return it with the current time as its end, unless it had ended before."""
        return self if self.ended_at else self._replace(ended_at=now_iso())

    def to_json(self) -> dict[str, Any]:
        """Return it in the form of exit.json."""
        value = {key: getattr(self, name) for key, name in _FIELDS.items()}
        return {key: item for key, item in value.items() if item is not None and item not in ([], ())}


def decide(worker: WorkerDir, decision: Decision, *, durable: bool = True) -> Decision | None:
    """Make the one decision about a worker's end, and return it; None if one was made before.

    The folder of a worker may have been removed. It is not made again: the first end in the log is the decision then.

    Args:
        durable: On disk when this returns; who decides about many makes their files durable together.
    """
    from agentctl.supervision.worker.mount_points import clear_mount_points  # Not before the end: memory.

    clear_mount_points(worker)
    decision = _with_last_line(worker, decision.now())
    said = decision.to_json()
    value = {key: item for key, item in said.items() if _fits(key, item)}
    content, decision = to_json(value), decision if value == said else _decision_from(value)
    try:
        with locked(worker.lock):
            if create_whole(worker.exit, content, durable=durable):
                return decision
            try:
                read_decision(worker)
            except (Damaged, PermissionError):  # The worker wrote something else there, or took its mode.
                set_aside(worker.exit)
                return decision if create_whole(worker.exit, content, durable=durable) else None
            return None
    except FileNotFoundError:
        return decision


def _with_last_line(worker: WorkerDir, decision: Decision) -> Decision:
    """Return the decision about a failure with what the worker wrote last: read once, and told wherever its end is."""
    if decision.status is not Status.FAILED or decision.last_line is not None:
        return decision
    from agentctl.supervision.worker.output_at_end import line_at_end  # Most workers do not fail: memory.

    return decision._replace(last_line=line_at_end(worker))


def keep_end(worker: WorkerDir, decision: Decision, problem: object) -> None:
    """Keep in memory an end that the disk refuses.

    Raises:
        AgentctlError: Memory refuses it too.
        OSError: The same.
    """
    deferred.say(worker, held(decision.now(), problem))


def held(decision: Decision, problem: object) -> RefusedByDisk:
    """Return what a guardian says of an end that the disk refuses."""
    return {"problem": str(problem), "end": decision.to_json()}


def held_end(worker: WorkerDir) -> Decision | None:
    """Return the end that a worker has had although the disk has not taken it yet; None if there is none."""
    end = deferred.standing(worker).get("end")
    return decision_in(end) if isinstance(end, dict) else None


def clear_no_decision(worker: WorkerDir) -> None:
    """Set aside an exit.json that is not a decision, while a live shim has yet to make its own."""
    if not os.path.lexists(worker.exit) or not is_alive_held(worker.shim):
        return
    with locked(worker.lock):
        try:
            read_decision(worker)
        except (Damaged, PermissionError):
            set_aside(worker.exit)


def restore_access(worker: WorkerDir) -> None:
    """Undo what a worker did to the mode of its own folder, so that its end can be written."""
    with contextlib.suppress(OSError):
        if not os.path.islink(worker.path):
            os.chmod(worker.path, 0o700)


def read_decision(worker: WorkerDir) -> Decision:
    """Return the decision about a worker's end.

    Raises:
        Damaged: There is none, or it does not describe an end.
    """
    decision = _decision_on_disk(worker)
    if decision is None:
        raise Damaged(f"{worker.exit} does not describe an end", hint=AtTerminal("agentctl doctor --fix"))
    return decision


def _decision_on_disk(worker: WorkerDir) -> Decision | None:
    return decision_in(read_json(worker.exit) or {})


def decision_in(value: Mapping[str, Any]) -> Decision | None:
    """Return the decision that the content of an exit.json is; None if it does not describe an end."""
    return _decision_from(value) if _tells_end(value) else None


def _decision_from(value: Mapping[str, Any]) -> Decision:
    fields = {_FIELDS[key]: item for key, item in value.items() if key in _FIELDS and item is not None}
    return Decision(**{**fields, "status": Status(value["status"])})


def decision_of(worker: WorkerDir) -> Decision | None:
    """Return the decision about a worker's end; None if there is none, or it does not describe an end.

    Where its folder was removed, the log has the decision.

    Raises:
        StorageError: It cannot be read.
    """
    with storage_errors(worker.exit, "read"):
        try:
            found = _decision_on_disk(worker)
        except (Damaged, PermissionError):  # The worker took its mode.
            found = None
        return found if found is not None or worker.path.exists() else _decision_in_log(worker)


def _decision_in_log(worker: WorkerDir) -> Decision | None:
    found = None
    for event in eventlog.events_about(worker.task.events, worker.instance, ev.END_STATUS):
        said = {key: item for key, item in event["payload"].items() if key in _TOLD}
        said |= {"by": event.get("by"), "endedAt": event.get("ts")}
        found = decision_in({**said, "status": ev.END_STATUS[event["type"]]}) or found
    return found


def status_at_end(worker: WorkerDir) -> Status:
    """Return how a worker ended; one whose decision cannot be read has failed."""
    decision = decision_of(worker) or held_end(worker)
    return Status.FAILED if decision is None else decision.status


def _tells_end(decision: Mapping[str, Any]) -> bool:
    """Return whether each field is that of an end: a worker can write anything in the place of its decision."""
    status = decision.get("status")
    return (
        isinstance(status, str)
        and status in ev.END_EVENT
        and all(_fits(key, item) for key, item in decision.items() if item is not None)
    )


def _fits(key: str, item: object) -> bool:
    """Return whether a field of a decision has the right type."""
    is_number = isinstance(item, (int, float)) and not isinstance(item, bool)
    return isinstance(item, _KINDS.get(key, object)) and (not is_number or finite(item) is not None)


def publish(worker: WorkerDir, decision: Decision | None = None, *, since: int = 0) -> None:
    """Append the event of a decided end, unless the log has it.

    It is not flushed: a power cut that takes it leaves the decision, and the next look appends it again. A wait
    flushes the log before it records that it has given an end out.

    Args:
        decision: The one that was just made; None reads it.
        since: An offset in the log before which there is no such event.
    """
    decision = decision or read_decision(worker)
    if decision.status is Status.FAILED:
        _note_failure(worker, decision.reason)
    event = _event_of(worker, decision)
    eventlog.append(worker.task.events, [event], unless=lambda fd: not _is_for_log(fd, worker, since), durable=False)


def publish_all(task: TaskDir, decisions: Mapping[str, Decision], *, since: int = 0) -> None:
    """Append the events of ends that were decided in the queue, by one write; those that the log has are left out."""
    events = [_event_of(task.worker(instance), decision) for instance, decision in decisions.items()]
    known = partial(eventlog.instances_in, kinds=ev.END_STATUS, since=since)
    eventlog.append(task.events, events, known=known, durable=False)


def _event_of(worker: WorkerDir, decision: Decision) -> ev.Event:
    value = decision.to_json()
    payload: dict[str, Any] = {key: value[key] for key in _TOLD if key in value}
    if payload.get("attempt") == 1:
        del payload["attempt"]  # A reader of 10,000 ends has that much less to read.
    if decision.swept:
        payload["swept"] = len(decision.swept)
    if decision.uncollected:
        payload["uncollected"] = len(decision.uncollected)
    kind = ev.END_EVENT[decision.status]
    return ev.make_event(now_iso(), kind, worker.task.id, decision.by, payload, worker.instance)


def _note_failure(worker: WorkerDir, reason: str | None) -> None:
    from agentctl.domain.tree.breaker import COUNTED  # Most workers do not fail.
    from agentctl.supervision.worker.failures import note_failure

    if reason in COUNTED:
        note_failure(worker)


def has_end(fd: int, instance: str, since: int = 0) -> bool:
    """Return whether a log has the end of `instance` from offset `since` on."""
    return bool(eventlog.events_in(fd, instance, ev.END_STATUS, since))


def _is_for_log(fd: int, worker: WorkerDir, since: int) -> bool:
    """Return whether the event of a worker's end is to be appended.

    Between a look at the end and this, the worker may have been removed, and another one begun under its name.
    """
    if has_end(fd, worker.instance, since):
        return False
    try:
        return worker.has_ended or not worker.path.exists()
    except StorageError:  # Whoever decided the end could look.
        return True


def is_over(worker: WorkerDir) -> bool:
    """Return whether a worker in the queue was already started or has ended: its ticket is then a leftover.

    A power cut may bring back the name of a removed ticket; starting it again would run the worker twice.
    """
    return worker.has_ended or was_started(worker)


def was_started(worker: WorkerDir) -> bool:
    """Return whether the log says that a worker was started, and was not parked since."""
    return _last_start(worker).get("type") in _STARTS


def parked_as(worker: WorkerDir) -> Mapping[str, Any] | None:
    """Return what the log says of how a worker was parked; None if it is not parked."""
    last = _last_start(worker)
    return last["payload"] if last.get("type") == ev.PARKED else None


_STARTS = frozenset({ev.STARTED, ev.RETRIED})


def _last_start(worker: WorkerDir) -> Mapping[str, Any]:
    found = eventlog.events_about(worker.task.events, worker.instance, (*_STARTS, ev.PARKED))
    return found[-1] if found else {}


def started_among(task: TaskDir, instances: Collection[str]) -> set[str]:
    """Return those of some workers of which `was_started` is true, by one look through the log."""
    started: set[str] = set()
    for event in eventlog.LogReader(task.events).events() if instances else ():
        if event["type"] in _STARTS:
            started.add(str(event.get("agentInstance")))
        elif event["type"] in (ev.PARKED, ev.QUEUED):  # Queued anew: another worker of the name was removed.
            started.discard(str(event.get("agentInstance")))
    return started.intersection(instances)


def log_size(task: TaskDir) -> int:
    """Return the size of the log now: any later end comes after that offset."""
    try:
        return os.stat(task.events).st_size
    except FileNotFoundError:
        return 0


def from_wait_status(code: int, status: int) -> tuple[Status, Reason | None, int | None, str | None]:
    """Return (status, reason, exit code, signal name) for si_code and si_status of waitid(2)."""
    if code == os.CLD_EXITED:
        return (Status.COMPLETED, None, 0, None) if status == 0 else (Status.FAILED, Reason.EXIT_CODE, status, None)
    return Status.FAILED, Reason.SIGNAL, None, signal_name(status)


def signal_name(number: int) -> str:
    """Return the name of a signal: SIGKILL, or SIG64 for one without."""
    found = (name for name, value in vars(signal).items() if value == number)
    names = [name for name in found if name.startswith("SIG") and "_" not in name]
    return min(names, default=f"SIG{number}")  # Of two names the first one, as in `signal.Signals`.
