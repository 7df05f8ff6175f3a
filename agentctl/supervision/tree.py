"""The process tree of a worker: what belongs to it, and what only happens to be below it.

With a shim the tree is exact: the shim is child subreaper, so every orphan becomes its child, in spite of setsid and
double fork. Without one it is found by session, group and cookie, as far as it can be.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterable

from agentctl.adapters import descent, processes
from agentctl.adapters.files import read_json, read_quietly
from agentctl.adapters.paths import FilePath
from agentctl.adapters.processes import Identity
from agentctl.adapters.taskdir import AgentDir, TaskDir
from agentctl.errors import Damaged
from agentctl.lean import Any, NamedTuple
from agentctl.supervision.environment import AGENT_DIR, COOKIE

#: The script that a shim's command line names, followed by the root task's directory.
#: Before the folder of the worker on the command line of an undertaker, which is the same program.
BURY = "--bury"
_SHIM_SUFFIX = "agentctl/shim/__main__.py"
SHIM_SCRIPT = str(FilePath(os.path.realpath(__file__)).parent.parent / "shim/__main__.py")


def is_foreign(pid: int, cookie: str) -> bool:
    """Tell whether a process below a worker is none of its own: another live shim, or another worker's process.

    Both claims are verified with the files, or a worker could spare its children by making them.
    """
    return is_live_shim(pid) or _carries_other_cookie(pid, cookie)


def is_live_shim(pid: int) -> bool:
    """Tell whether a process is a shim that a slot names, or the undertaker that a worker's shim.json names."""
    arguments = processes.command_line(pid)
    # By its ending: another agentctl on this machine has its script elsewhere.
    if not any(part.endswith(_SHIM_SUFFIX) for part in arguments[:-1]):
        return False
    if BURY in arguments:
        named = [processes.identity_from(read_quietly(AgentDir(arguments[-1]).shim))]
    else:
        named = list(shims_of(TaskDir(arguments[-1]).slots))
    me = processes.identify(pid)
    return me is not None and me in named


def guarded_by(pid: int) -> AgentDir | None:
    """Return the worker that a live shim guards, as a place of its tree of tasks names it; None for all else."""
    arguments = processes.command_line(pid)
    if not any(part.endswith(_SHIM_SUFFIX) for part in arguments[:-1]) or BURY in arguments:
        return None
    me, root = processes.identify(pid), TaskDir(arguments[-1])
    with contextlib.suppress(OSError):
        for name in os.listdir(root.slots):
            occupant = read_quietly(root.slots / name)
            if occupant.get("instance") and processes.identity_from(occupant.get("shim")) == me:
                return root.sibling(str(occupant.get("taskId"))).agent(str(occupant["instance"]))
    return None


def shims_of(slots: FilePath) -> Iterable[Identity | None]:
    """Yield the identities of the shims that the slots of a task name."""
    try:
        names = os.listdir(slots)
    except OSError:
        return
    for name in names:
        try:
            shim = processes.identity_from((read_json(slots / name) or {}).get("shim"))
        except (Damaged, OSError):
            continue
        if shim is not None:
            yield shim


def shim_in_a_slot(slots: FilePath, agent: AgentDir) -> Identity | None:
    """Return the shim that a slot names for a worker."""
    with contextlib.suppress(OSError):
        for name in os.listdir(slots):
            occupant = read_quietly(slots / name)
            if (occupant.get("taskId"), occupant.get("instance")) == (agent.task.id, agent.instance):
                return processes.identity_from(occupant.get("shim"))
    return None


def _carries_other_cookie(pid: int, cookie: str) -> bool:
    environ = processes.environment_of(pid)
    other, folder = environ.get(COOKIE.encode(), b""), environ.get(AGENT_DIR.encode())
    if folder is None or other == cookie.encode():
        return False
    try:
        worker = read_json(AgentDir(os.fsdecode(folder)).worker) or {}
    except (Damaged, OSError):
        return False
    return bool(other) and worker.get("cookie") == os.fsdecode(other)


#: A tree that forks faster than it is stopped is killed in the state that it has by then, and looked at again.
_STOP_PASSES = 100


class Member(NamedTuple):
    """A process of a tree as a look saw it."""

    pid: int
    start: int
    state: str


class Tree:
    """The living processes of one worker, found anew at each look."""

    def __init__(self, cookie: str, look: Callable[[], Iterable[int]]) -> None:
        self._cookie = cookie
        self._look = look
        self._foreign: set[tuple[int, int]] = set()

    def living(self) -> list[Member]:
        """Return what is alive, parents before children."""
        found = []
        for pid in self._look():
            stat = processes.read_stat(pid)
            if stat is not None and stat.state not in "ZX":
                found.append(Member(pid, stat.start, stat.state))
        return found

    def is_foreign(self, pid: int) -> bool:
        """Tell whether a process belongs to somebody else; once it does, it always will.

        The other way round it may change: a launcher becomes a shim, and a shim is named a moment after its start.
        """
        stat = processes.read_stat(pid)
        if stat is None:
            return False
        key = (pid, stat.start)
        if key not in self._foreign and is_foreign(pid, self._cookie):
            self._foreign.add(key)
        return key in self._foreign

    def signal(self, *numbers: int) -> None:
        """Send each signal to everything that lives."""
        for member in self.living():
            _send(member, *numbers)

    def terminate(self) -> None:
        """SIGTERM, then SIGCONT: a stopped process acts on nothing."""
        self.signal(signal.SIGTERM, signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL all: stopped first, so that none forks on while the others die."""
        self.stop()
        self.signal(signal.SIGKILL)

    def stop(self) -> None:
        """SIGSTOP all, until a look finds nothing that runs."""
        for _ in range(_STOP_PASSES):
            running = [member for member in self.living() if member.state not in "TtD"]
            if not running:
                return
            for member in running:
                _send(member, signal.SIGSTOP)

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


def below_me(cookie: str) -> Tree:
    """Return the tree of the worker below this process, a child subreaper: all its descendants but the foreign ones."""
    tree: Tree

    def look() -> Iterable[int]:
        roots = descent.children_of(os.getpid())
        foreign = [pid for pid in roots if tree.is_foreign(pid)]
        seen = list(descent.walk(roots, skip=foreign))
        hidden = [pid for pid in seen if pid not in roots and tree.is_foreign(pid)]
        return descent.walk(roots, skip=[*foreign, *hidden]) if hidden else seen

    tree = Tree(cookie, look)
    return tree


def without_shim(leader: Identity, cookie: str) -> Tree:
    """Return the tree of a worker whose shim is gone: its session, what carries its cookie, and all below these."""
    tree: Tree

    def look() -> Iterable[int]:
        if leader.boot != processes.boot_id() or leader.pid_namespace != processes.pid_namespace():
            return []
        owns_session = _owns_session(leader)
        roots = [pid for pid in processes.all_pids() if _belongs(pid, leader, cookie, owns_session)]
        foreign = [pid for pid in descent.walk(roots) if tree.is_foreign(pid)]
        return descent.walk(roots, skip=[*foreign, os.getpid()])  # A worker may have asked for its own end.

    tree = Tree(cookie, look)
    return tree


def _owns_session(leader: Identity) -> bool:
    """Tell whether the session that is named after a leader is its own.

    The kernel gives a pid to nobody else while a session has it; where somebody else has it, the session is theirs.
    """
    stat = processes.read_stat(leader.pid)
    return stat is None or stat.start == leader.start


def _belongs(pid: int, leader: Identity, cookie: str, owns_session: bool) -> bool:
    stat = processes.read_stat(pid)
    if stat is None or stat.start < leader.start:
        return False
    if pid == leader.pid:
        return stat.start == leader.start and stat.session == pid  # A worker cannot leave the session that it leads.
    is_of_session = owns_session and stat.session == leader.pid
    return is_of_session or processes.environment_of(pid).get(COOKIE.encode()) == cookie.encode()
