"""The process tree of a worker: what belongs to it, and what only happens to be below it.

With a shim the tree is exact: the shim is a child subreaper, so every orphan becomes its child, despite setsid and
double fork. Without a shim, as much as possible of the tree is found by session, cookie and folder.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

from agentctl.adapters import descent, processes
from agentctl.adapters.signals import signal
from agentctl.adapters.taskdir import WorkerDir
from agentctl.errors import StorageError
from agentctl.lean import Any, NamedTuple
from agentctl.supervision.life.belonging import Claim
from agentctl.supervision.life.strangers import is_foreign

#: After this, a tree that forks faster than it is stopped is killed in its present state, and looked at again.
_STOP_PASSES = 100
#: How often a look that found nothing is repeated because a process died during it.
_SURE_LOOKS = 20
#: How often the files that a process names are read: what can never be read proves nothing, as a worker may see to it.
_LOOKS = 3


class Member(NamedTuple):
    """A process of a tree as a look saw it."""

    pid: int
    start: int
    state: str
    parent: int
    #: As in `processes.Stat`.
    cpu: int


class ProcessTree:
    """The living processes of one worker, found anew at each look."""

    def __init__(self, worker: WorkerDir, cookie: bytes | None) -> None:
        self._worker, self._cookie = worker, cookie
        self._foreign: set[tuple[int, int]] = set()

    def _look(self) -> Iterable[int]:
        """Return the pids of the tree, parents before children, some of which may be dead."""
        raise NotImplementedError

    def is_gone(self) -> bool:
        """Return whether it is certain that nothing of it is alive.

        A look that finds no process proves nothing. One that was alive when the look began may have left behind a child
        that the look did not meet, and have died before its own turn. So a look counts only if no process died during
        it. False if no look counts: ask again later.
        """
        raise NotImplementedError

    def living(self) -> list[Member]:
        """Return what is alive, parents before children."""
        return _living(self._look())

    def is_foreign(self, pid: int) -> bool:
        """Return whether a process is not the worker's own; one that is foreign stays so.

        One that is not can become foreign: a launcher becomes a shim, and a shim is named a moment after its start.
        """
        stat = processes.read_stat(pid)
        if stat is None:
            return False
        key = (pid, stat.start)
        if key not in self._foreign and self._is_somebody_elses(pid):
            self._foreign.add(key)
        return key in self._foreign

    def _is_somebody_elses(self, pid: int) -> bool:
        for _ in range(_LOOKS):
            try:
                return is_foreign(pid, self._worker, self._cookie)
            except StorageError:
                continue
            except Exception:  # noqa: BLE001 - what a process says of itself spares it only if it can be verified
                break
        return False

    def signal(self, *numbers: int) -> None:
        """Send each signal to every live process."""
        for member in self.living():
            _send(member, *numbers)

    def interrupt(self) -> None:
        """Send SIGINT, then SIGCONT."""
        self.signal(signal.SIGINT, signal.SIGCONT)

    def terminate(self) -> None:
        """Send SIGTERM, then SIGCONT: a stopped process acts on no signal."""
        self.signal(signal.SIGTERM, signal.SIGCONT)

    def kill(self) -> None:
        """Send SIGKILL to all, after stopping them, so that none keeps forking while the others die."""
        self.stop()
        self.signal(signal.SIGKILL)

    def stop(self) -> bool:
        """Send SIGSTOP until a look finds nothing that runs; return whether anything did."""
        for number in range(_STOP_PASSES):
            running = [member for member in self.living() if member.state not in "TtD"]
            if not running:
                return number > 0
            for member in running:
                _send(member, signal.SIGSTOP)
        return True

    def proceed(self) -> None:
        """Send SIGCONT to all."""
        self.signal(signal.SIGCONT)

    def describe(self, *, with_exiting: bool = True) -> list[dict[str, Any]]:
        """Return the live processes, for a person to read.

        Args:
            with_exiting: Also those in exit(2), of which nothing tells any more whether they are foreign: a shim that
                is about to leave is found here as well.
        """
        return [
            {"pid": member.pid, "command": " ".join(processes.command_line_of(member.pid))[:200]}
            for member in self.living()
            if with_exiting or not processes.is_exiting(member.pid)
        ]


def _send(member: Member, *numbers: int) -> None:
    """Signal exactly the process that was looked at: its pid may have been reused since."""
    me = processes.identify(member.pid)
    if me is None or me.start != member.start:
        return
    for number in numbers:
        # It is another user's by setuid: the next look finds it alive, and survivors are named.
        with contextlib.suppress(PermissionError):
            processes.signal_process(me, number)


class SupervisedTree(ProcessTree):
    """The tree of the worker below this process, a child subreaper: all its descendants except foreign ones.

    Args:
        leader: The pid of the worker's leader, a child of this process that is not reaped before the tree is gone.
    """

    def __init__(self, worker: WorkerDir, cookie: bytes, leader: int) -> None:
        super().__init__(worker, cookie)
        self._leader = leader

    def interrupt(self) -> None:
        """Send SIGINT to the leader's group, as Ctrl-C in a terminal does; then SIGCONT."""
        if self._leader > 1:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._leader, signal.SIGINT)
                os.killpg(self._leader, signal.SIGCONT)

    def _look(self) -> Iterable[int]:
        roots = descent.child_processes(os.getpid())
        foreign = [pid for pid in roots if self.is_foreign(pid)]
        seen = list(descent.walk(roots, skip=foreign))
        hidden = [pid for pid in seen if pid not in roots and self.is_foreign(pid)]
        return descent.walk(roots, skip=[*foreign, *hidden]) if hidden else seen

    def is_gone(self) -> bool:
        """Return whether it is certain that nothing of it is alive: an orphan is below this process at once."""
        dead: set[int] = set()
        for _ in range(_SURE_LOOKS):
            met = set(self._look())
            if _living(met):
                return False
            if met <= dead:
                return True
            dead |= met
        return False


class UnsupervisedTree(ProcessTree):
    """The tree of a worker whose shim is gone: the processes proven to be its own, and all below them."""

    def __init__(self, claim: Claim) -> None:
        super().__init__(claim.worker, claim.cookie)
        self._claim = claim

    def _look(self) -> Iterable[int]:
        roots = [pid for pid in processes.all_pids() if self._claim.has(pid)]
        foreign = [pid for pid in descent.walk(roots) if self.is_foreign(pid)]
        return descent.walk(roots, skip=[*foreign, os.getpid()])  # A worker may have asked for its own end.

    def kill(self) -> None:
        """Send SIGKILL to all, then at once to newcomers: no look meets a program that keeps forking and exiting."""
        super().kill()
        met = set(processes.all_pids())
        for _ in range(_SURE_LOOKS):
            new = set(processes.all_pids()) - met
            for member in _living(filter(self._claim.has, new)):
                _send(member, signal.SIGKILL)
            if not new:
                return
            met |= new

    def is_gone(self) -> bool:
        """Return whether it is certain that nothing of it is alive.

        Any process of the machine may be part of it, and some process always dies. But one that was there before a look
        that found nothing, and still lives, is not part of it: only newcomers are looked at, at once.
        """
        met = set(processes.all_pids())
        if self.living():
            return False
        for _ in range(_SURE_LOOKS):
            new = set(processes.all_pids()) - met
            if _living(filter(self._claim.has, new)):
                return False
            if len(_living(new)) == len(new):
                return True
            met |= new
        return False


def _living(pids: Iterable[int]) -> list[Member]:
    found = []
    for pid in pids:
        stat = processes.read_stat(pid)
        if stat is not None and stat.state not in "ZX":
            found.append(Member(pid, stat.start, stat.state, stat.ppid, stat.cpu))
    return found
