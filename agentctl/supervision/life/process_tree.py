"""The process tree of a worker: what belongs to it, and what only happens to be below it.

With a shim the tree is exact: the shim is child subreaper, so every orphan becomes its child, in spite of setsid and
double fork. Without one it is found by session, cookie and folder, as far as it can be.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable

from agentctl.adapters import descent, processes
from agentctl.adapters.taskdir import WorkerDir
from agentctl.lean import Any, NamedTuple
from agentctl.supervision.life.belonging import Claim
from agentctl.supervision.life.strangers import is_foreign

#: A tree that forks faster than it is stopped is killed in the state that it has by then, and looked at again.
_STOP_PASSES = 100
#: So often a look that found nothing is taken again, where somebody died in it.
_SURE_LOOKS = 20


class Member(NamedTuple):
    """A process of a tree as a look saw it."""

    pid: int
    start: int
    state: str
    parent: int
    #: As `processes.Stat` has it.
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
        """Tell whether nothing of it is alive, for sure.

        A look that finds nobody is not proof: who was alive when it began may have left a child behind that it did not
        meet, and have died before its turn came. So nobody may have died during the look that counts. False where that
        cannot be had: ask again later.
        """
        raise NotImplementedError

    def living(self) -> list[Member]:
        """Return what is alive, parents before children."""
        return _living(self._look())

    def is_foreign(self, pid: int) -> bool:
        """Tell whether a process belongs to somebody else; once it does, it always will.

        The other way round it may change: a launcher becomes a shim, and a shim is named a moment after its start.
        """
        stat = processes.read_stat(pid)
        if stat is None:
            return False
        key = (pid, stat.start)
        if key not in self._foreign and self._is_somebody_elses(pid):
            self._foreign.add(key)
        return key in self._foreign

    def _is_somebody_elses(self, pid: int) -> bool:
        try:
            return is_foreign(pid, self._worker, self._cookie)
        except Exception:  # noqa: BLE001 - what a process says of itself spares it only where it can be verified
            return False

    def signal(self, *numbers: int) -> None:
        """Send each signal to everything that lives."""
        for member in self.living():
            _send(member, *numbers)

    def interrupt(self) -> None:
        """SIGINT, then SIGCONT."""
        self.signal(signal.SIGINT, signal.SIGCONT)

    def terminate(self) -> None:
        """SIGTERM, then SIGCONT: a stopped process acts on nothing."""
        self.signal(signal.SIGTERM, signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL all: stopped first, so that none forks on while the others die."""
        self.stop()
        self.signal(signal.SIGKILL)

    def stop(self) -> bool:
        """SIGSTOP all, until a look finds nothing that runs; tell whether anything did."""
        for number in range(_STOP_PASSES):
            running = [member for member in self.living() if member.state not in "TtD"]
            if not running:
                return number > 0
            for member in running:
                _send(member, signal.SIGSTOP)
        return True

    def proceed(self) -> None:
        """SIGCONT all."""
        self.signal(signal.SIGCONT)

    def describe(self) -> list[dict[str, Any]]:
        """Return what is alive, for a person to read."""
        return [
            {"pid": member.pid, "command": " ".join(processes.command_line(member.pid))[:200]}
            for member in self.living()
        ]


def _send(member: Member, *numbers: int) -> None:
    """Signal exactly the process that was looked at: its pid may have become somebody else's since."""
    me = processes.identify(member.pid)
    if me is None or me.start != member.start:
        return
    for number in numbers:
        # Setuid to somebody else: the next look tells that it lives on, and survivors are named.
        with contextlib.suppress(PermissionError):
            processes.send(me, number)


class SupervisedTree(ProcessTree):
    """The tree of the worker below this process, a child subreaper: all its descendants but the foreign ones.

    Args:
        leader: The pid of the worker's leader, a child of this process that is not waited for before the tree is gone.
    """

    def __init__(self, worker: WorkerDir, cookie: bytes, leader: int) -> None:
        super().__init__(worker, cookie)
        self._leader = leader

    def interrupt(self) -> None:
        """SIGINT to the leader's group, as Ctrl-C in a terminal sends it; then SIGCONT."""
        if self._leader > 1:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._leader, signal.SIGINT)
                os.killpg(self._leader, signal.SIGCONT)

    def _look(self) -> Iterable[int]:
        roots = descent.children_of(os.getpid())
        foreign = [pid for pid in roots if self.is_foreign(pid)]
        seen = list(descent.walk(roots, skip=foreign))
        hidden = [pid for pid in seen if pid not in roots and self.is_foreign(pid)]
        return descent.walk(roots, skip=[*foreign, *hidden]) if hidden else seen

    def is_gone(self) -> bool:
        """Tell whether nothing of it is alive, for sure: each orphan is below this process at once."""
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
    """The tree of a worker whose shim is gone: what is proven to be its, and all below that."""

    def __init__(self, claim: Claim) -> None:
        super().__init__(claim.worker, claim.cookie)
        self._claim = claim

    def _look(self) -> Iterable[int]:
        roots = [pid for pid in processes.all_pids() if self._claim.has(pid)]
        foreign = [pid for pid in descent.walk(roots) if self.is_foreign(pid)]
        return descent.walk(roots, skip=[*foreign, os.getpid()])  # A worker may have asked for its own end.

    def kill(self) -> None:
        """SIGKILL all, then at once who has come since: a look never meets one who lives on from process to process."""
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
        """Tell whether nothing of it is alive, for sure.

        Any process of the machine may be its, and somebody always dies. But who was there before a look that found
        nobody, and lives, is none of its: only who has come since is looked at, at once.
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
