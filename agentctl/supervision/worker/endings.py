"""How a worker's end is decided once, and told.

`exit.json` is the decision: created whole or not at all, so that of two deciders one wins. The event that tells of it
comes after; whoever finds the one without the other appends it, copying the decision and never making one.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Mapping, Sequence

from agentctl.adapters import eventlog
from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import create_whole, read_json, set_aside, to_json
from agentctl.adapters.locks import is_alive_held, locked
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain import events as ev
from agentctl.domain.numbers import finite
from agentctl.domain.states import Reason, Status
from agentctl.errors import Damaged
from agentctl.lean import Any, NamedTuple

_TOLD = ("reason", "exitCode", "signal", "message", "durationSeconds", "attempt")
#: The fields of a decision by their names in the file.
_FIELDS = {
    "status": "status", "reason": "reason", "by": "by", "exitCode": "exit_code", "signal": "signal",
    "message": "message", "startedAt": "started_at", "endedAt": "ended_at", "durationSeconds": "duration_s",
    "attempt": "attempt", "swept": "swept", "kept": "kept", "uncollected": "uncollected", "usage": "usage",
    "worked": "worked",
}  # fmt: skip
#: What each of them is, where it is there.
_KINDS: Mapping[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("reason", "by", "signal", "message", "startedAt", "endedAt"), str),
    **dict.fromkeys(("exitCode", "attempt"), int),
    "durationSeconds": (int, float),
    **dict.fromkeys(("swept", "kept", "uncollected"), list),
    **dict.fromkeys(("usage", "worked"), dict),
}


class Decision(NamedTuple):
    """How a worker ended, as exit.json says it: what was decided, and what was seen of the exit."""

    status: Status
    #: A `Reason`; of a file that a newer version wrote any text.
    reason: str | None = None
    by: str = "agentctl"
    exit_code: int | None = None
    signal: str | None = None
    message: str | None = None
    started_at: str | None = None
    #: None until it is decided.
    ended_at: str | None = None
    duration_s: float | None = None
    attempt: int = 1
    #: What the sweep ended after the leader: [{pid, command}].
    swept: Sequence[dict[str, Any]] = ()
    #: What `--keep-children` let live.
    kept: Sequence[dict[str, Any]] = ()
    #: The workers that it had started and that lived on when it ended: `task/instance`.
    uncollected: Sequence[str] = ()
    usage: dict[str, float] | None = None
    #: When it was at work, over all of its attempts: {boot, spans}.
    worked: Mapping[str, Any] | None = None

    def now(self) -> Decision:
        """Return it as it is when it is made now."""
        return self._replace(ended_at=now_iso())

    def to_json(self) -> dict[str, Any]:
        """Return it as it stands in exit.json."""
        value = {key: getattr(self, name) for key, name in _FIELDS.items()}
        return {key: item for key, item in value.items() if item is not None and item not in ([], ())}


def decide(worker: WorkerDir, decision: Decision) -> Decision | None:
    """Make the one decision about a worker's end, and return it; None where one has been made before."""
    if not worker.path.exists():  # Somebody may have removed the folder under a running worker.
        worker.path.mkdir(exist_ok=True)
    value = decision.now().to_json()
    value = {key: item for key, item in value.items() if _fits(key, item)}
    content, decision = to_json(value), _decision_from(value)
    with locked(worker.lock):
        if create_whole(worker.exit, content):
            return decision
        try:
            read_decision(worker)
        except (Damaged, PermissionError):  # A worker put something there that decides nothing, or took its mode.
            set_aside(worker.exit)
            return decision if create_whole(worker.exit, content) else None
        return None


def clear_no_decision(worker: WorkerDir) -> None:
    """Set aside what lies in the place of a decision and is none, while a shim lives that has its decision to make."""
    if not is_alive_held(worker.shim) or not os.path.lexists(worker.exit):
        return
    with locked(worker.lock):
        try:
            read_decision(worker)
        except (Damaged, PermissionError):
            set_aside(worker.exit)


def restore_access(worker: WorkerDir) -> None:
    """Take back what a worker did to the mode of its own folder, so that its end can be told."""
    with contextlib.suppress(OSError):
        if not os.path.islink(worker.path):
            os.chmod(worker.path, 0o700)


def read_decision(worker: WorkerDir) -> Decision:
    """Return the decision about a worker's end.

    Raises:
        Damaged: There is none, or it tells no end.
    """
    value = read_json(worker.exit)
    if value is None or not _tells_end(value):
        raise Damaged(f"{worker.exit} tells no end", hint="agentctl doctor --fix")
    return _decision_from(value)


def _decision_from(value: Mapping[str, Any]) -> Decision:
    fields = {_FIELDS[key]: item for key, item in value.items() if key in _FIELDS and item is not None}
    return Decision(**{**fields, "status": Status(value["status"])})


def decision_of(worker: WorkerDir) -> Decision | None:
    """Return the decision about a worker's end; None where there is none, or what lies in its place tells no end."""
    try:
        return read_decision(worker)
    except (Damaged, OSError):
        return None


def status_at_end(worker: WorkerDir) -> Status:
    """Return how a worker ended; one whose decision cannot be read has failed."""
    decision = decision_of(worker)
    return Status.FAILED if decision is None else decision.status


def _tells_end(decision: Mapping[str, Any]) -> bool:
    """Tell whether this is an end, in each of its fields: a worker can write anything in the place of its own."""
    status = decision.get("status")
    return (
        isinstance(status, str)
        and status in ev.END_EVENT
        and all(_fits(key, item) for key, item in decision.items() if item is not None)
    )


def _fits(key: str, item: object) -> bool:
    """Tell whether a field of a decision is what it has to be."""
    is_number = isinstance(item, (int, float)) and not isinstance(item, bool)
    return isinstance(item, _KINDS.get(key, object)) and (not is_number or finite(item) is not None)


def publish(worker: WorkerDir, decision: Decision | None = None, *, since: int = 0) -> None:
    """Append the event that tells of a decided end, unless the log has it.

    It is not flushed: a power cut that takes it leaves the decision, and whoever looks next tells it again. A wait
    flushes the log before it notes that it gave an end out.

    Args:
        decision: The one that was just made; None reads it.
        since: An offset of the log before which no such event can stand.
    """
    decision = decision or read_decision(worker)
    if decision.status is Status.FAILED:
        _note_failure(worker, decision.reason)
    value = decision.to_json()
    payload: dict[str, Any] = {key: value[key] for key in _TOLD if key in value}
    if payload.get("attempt") == 1:
        del payload["attempt"]  # A reader of 10,000 ends has that much less to read.
    if decision.swept:
        payload["swept"] = len(decision.swept)
    if decision.uncollected:
        payload["uncollected"] = len(decision.uncollected)
    kind = ev.END_EVENT[decision.status]
    event = ev.make_event(now_iso(), kind, worker.task.id, decision.by, payload, worker.instance)
    eventlog.append(worker.task.events, [event], unless=lambda fd: has_end(fd, worker.instance, since), durable=False)


def _note_failure(worker: WorkerDir, reason: str | None) -> None:
    from agentctl.domain.breaker import COUNTED  # Most workers do not fail.
    from agentctl.supervision.worker.failures import note_failure

    if reason in COUNTED:
        note_failure(worker)


def has_end(fd: int, instance: str, since: int = 0) -> bool:
    """Tell whether a log tells of the end of `instance` from offset `since` on."""
    return any(True for _ in eventlog.events_in(fd, instance, ev.END_STATUS, since))


def is_over(worker: WorkerDir) -> bool:
    """Tell whether a worker in the queue has been started or has ended: its ticket came back from the dead.

    A power cut may bring back the name of a removed ticket; starting it again would run the worker twice.
    """
    return worker.has_ended or was_started(worker)


def was_started(worker: WorkerDir) -> bool:
    """Tell whether the log says that a worker was started, and not that it was given back to the queue since."""
    return _last_start(worker).get("type") in _STARTS


def parked_as(worker: WorkerDir) -> Mapping[str, Any] | None:
    """Return what the log says of how a worker was given back to the queue; None where it is not there for that."""
    last = _last_start(worker)
    return last["payload"] if last.get("type") == ev.PARKED else None


_STARTS = frozenset({ev.STARTED, ev.RETRIED})


def _last_start(worker: WorkerDir) -> Mapping[str, Any]:
    last: Mapping[str, Any] = {}
    for event in eventlog.events_about(worker.task.events, worker.instance, (*_STARTS, ev.PARKED)):
        last = event
    return last


def log_size(worker: WorkerDir) -> int:
    """Return the size of the log now: no end that comes later stands before it."""
    try:
        return os.stat(worker.task.events).st_size
    except FileNotFoundError:
        return 0


def from_wait_status(code: int, status: int) -> tuple[Status, Reason | None, int | None, str | None]:
    """Return (status, reason, exit code, signal name) of what waitid(2) tells: si_code and si_status."""
    if code == os.CLD_EXITED:
        return (Status.COMPLETED, None, 0, None) if status == 0 else (Status.FAILED, Reason.EXIT_CODE, status, None)
    return Status.FAILED, Reason.SIGNAL, None, signal_name(status)


def signal_name(number: int) -> str:
    """Return the name of a signal: SIGKILL, or SIG64 for one without."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"
