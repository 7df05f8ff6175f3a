"""Which processes are a worker's when its shim is gone: by proof, not by what a file says that the worker could write.

The proof is the environment with which a process was executed: the worker's cookie and folder, which nobody gives to a
stranger's process. For the leader, the log is proof too: it names the leader before the program's first instruction.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from agentctl.adapters import eventlog, processes
from agentctl.adapters.files import read_known
from agentctl.adapters.processes import Identity, Life
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain import events as ev
from agentctl.lean import Any, NamedTuple
from agentctl.supervision.worker.environment import AGENT_DIR, COOKIE

#: More attempts than any worker has.
_MOST_ATTEMPTS = 1_000_000


class Claim(NamedTuple):
    """What makes a process that lives here a worker's own."""

    worker: WorkerDir
    #: Its leader, dead or alive, if that is proven: then the session that it leads is the worker's as well.
    leader: Identity | None
    #: The cookie that its processes carry; None if worker.json cannot be believed: then the folder alone counts.
    cookie: bytes | None
    #: Processes that were started before this are not the worker's.
    since: int

    @property
    def is_led(self) -> bool:
        """Whether its leader lives."""
        return self.leader is not None and processes.life_of(self.leader) is Life.ALIVE

    def has(self, pid: int) -> bool:
        """Return whether a process is the worker's by its own proof, whatever it descends from."""
        stat = processes.read_stat(pid)
        if stat is None or stat.start < self.since:
            return False
        if self.leader is not None and stat.session == self.leader.pid and _owns_session(self.leader):
            return True
        return _carries(pid, self.worker, self.cookie)


class Record(NamedTuple):
    """What worker.json says of an attempt; the type of each field is checked, since the worker can have written it."""

    leader: Identity | None
    cookie: bytes
    attempt: int
    started_at: str | None


def record_of(worker: WorkerDir) -> Record:
    """Return a worker's record; a missing or wrong field gets the value of a first attempt's record."""
    return record_in(read_known(worker.process))


def record_in(value: Mapping[str, Any]) -> Record:
    """Return the record that the content of a worker.json is."""
    cookie, attempt, started_at = value.get("cookie"), value.get("attempt"), value.get("startedAt")
    return Record(
        leader=processes.identity_from(value),
        cookie=cookie.encode() if isinstance(cookie, str) and cookie.isascii() else b"",
        attempt=attempt if isinstance(attempt, int) and 1 <= attempt < _MOST_ATTEMPTS else 1,
        started_at=started_at if isinstance(started_at, str) else None,
    )


def claim_of(worker: WorkerDir, record: Record) -> Claim:
    """Return what makes a process a worker's: its record if that is proven, and what its processes carry."""
    leader, cookie, attempt, _ = record
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
    """Return whether the log names this leader for an attempt; the first event of the attempt counts."""
    if leader.boot != processes.boot_id() or leader.pid_namespace != processes.pid_namespace():
        return False
    birth = next((one for one in _births(worker) if one[0] == attempt), None)
    return birth is not None and birth[1:] == (leader.pid, leader.start)


def _births(worker: WorkerDir) -> Iterator[tuple[int, int, int]]:
    """Yield (attempt, pid, start) of each leader that the log names."""
    for event in eventlog.events_about(worker.task.events, worker.instance, (ev.STARTED, ev.RETRIED)):
        payload: dict[str, Any] = event["payload"]
        attempt = payload.get("attempt") if event["type"] == ev.RETRIED else 1
        pid, start = payload.get("pid"), payload.get("start")
        if isinstance(attempt, int) and isinstance(pid, int) and isinstance(start, int):
            yield attempt, pid, start


def _owns_session(leader: Identity) -> bool:
    """Return whether the session with the pid of a leader is its own.

    The kernel does not reuse a pid while a session has it. If another process has it, the session is that process's.
    """
    stat = processes.read_stat(leader.pid)
    return stat is None or stat.start == leader.start
