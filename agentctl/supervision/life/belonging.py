"""Which processes are a worker's when its shim is gone: by proof, and not by the word of a file that it could write.

Proof is what a process was executed with (the worker's cookie and its folder, which nobody gives to a stranger's
process), and for the worker's first process also the log: it tells of that before the first instruction of the program.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from agentctl.adapters import eventlog, processes
from agentctl.adapters.files import read_quietly
from agentctl.adapters.processes import Identity, Life
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain import events as ev
from agentctl.lean import Any, NamedTuple
from agentctl.supervision.worker.environment import AGENT_DIR, COOKIE

#: No worker is tried so often.
_MOST_ATTEMPTS = 1_000_000


class Claim(NamedTuple):
    """What of the processes that live here is a worker's."""

    worker: WorkerDir
    #: Its first process, dead or alive, where that is proven: then the session that it leads is the worker's as well.
    leader: Identity | None
    #: What its processes carry; None where worker.json is not to be believed: then the folder alone tells.
    cookie: bytes | None
    #: Nothing that was started before is its.
    since: int

    @property
    def is_led(self) -> bool:
        """Tell whether its first process lives."""
        return self.leader is not None and processes.life_of(self.leader) is Life.ALIVE

    def has(self, pid: int) -> bool:
        """Tell whether a process is the worker's by itself, whatever it descends from."""
        stat = processes.read_stat(pid)
        if stat is None or stat.start < self.since:
            return False
        if self.leader is not None and stat.session == self.leader.pid and _owns_session(self.leader):
            return True
        return _carries(pid, self.worker, self.cookie)


class Record(NamedTuple):
    """What worker.json says of an attempt, each field as it is typed: the worker can have written it."""

    leader: Identity | None
    cookie: bytes
    attempt: int
    started_at: str | None


def record_of(worker: WorkerDir) -> Record:
    """Return a worker's record; a field that is missing or odd is as in the record of a first attempt."""
    value = read_quietly(worker.process)
    cookie, attempt, started_at = value.get("cookie"), value.get("attempt"), value.get("startedAt")
    return Record(
        leader=processes.identity_from(value),
        cookie=cookie.encode() if isinstance(cookie, str) and cookie.isascii() else b"",
        attempt=attempt if isinstance(attempt, int) and 1 <= attempt < _MOST_ATTEMPTS else 1,
        started_at=started_at if isinstance(started_at, str) else None,
    )


def claim_of(worker: WorkerDir) -> Claim:
    """Return what is a worker's by its worker.json, as far as that is proven, and by what its processes carry."""
    leader, cookie, attempt, _ = record_of(worker)
    if leader is not None and (_is_carrier(leader, worker, cookie) or _is_in_log(leader, worker, attempt)):
        return Claim(worker, leader, cookie, leader.start)
    return Claim(worker, None, None, min((start for _, _, start in _births(worker)), default=0))


def _is_carrier(leader: Identity, worker: WorkerDir, cookie: bytes) -> bool:
    stat = processes.read_stat(leader.pid) if processes.life_of(leader) is Life.ALIVE else None
    return stat is not None and stat.session == leader.pid and _carries(leader.pid, worker, cookie)


def _carries(pid: int, worker: WorkerDir, cookie: bytes | None) -> bool:
    environ = processes.environment_of(pid)
    folder = environ.get(AGENT_DIR.encode())
    if folder is None or (cookie is not None and environ.get(COOKIE.encode()) != cookie):
        return False
    return worker.is_at(os.fsdecode(folder))


def _is_in_log(leader: Identity, worker: WorkerDir, attempt: int) -> bool:
    """Tell whether the log tells of this first process of an attempt: the first that does counts."""
    if leader.boot != processes.boot_id() or leader.pid_namespace != processes.pid_namespace():
        return False
    birth = next((one for one in _births(worker) if one[0] == attempt), None)
    return birth is not None and birth[1:] == (leader.pid, leader.start)


def _births(worker: WorkerDir) -> Iterator[tuple[int, int, int]]:
    """Yield attempt, pid and start of the first processes that the log tells of."""
    for event in eventlog.events_about(worker.task.events, worker.instance, (ev.STARTED, ev.RETRIED)):
        payload: dict[str, Any] = event["payload"]
        attempt = payload.get("attempt") if event["type"] == ev.RETRIED else 1
        pid, start = payload.get("pid"), payload.get("start")
        if isinstance(attempt, int) and isinstance(pid, int) and isinstance(start, int):
            yield attempt, pid, start


def _owns_session(leader: Identity) -> bool:
    """Tell whether the session that is named after a leader is its own.

    The kernel gives a pid to nobody else while a session has it; where somebody else has it, the session is theirs.
    """
    stat = processes.read_stat(leader.pid)
    return stat is None or stat.start == leader.start
