"""What is below a worker in the process tree and yet none of its own: other live shims, and other workers' processes.

A worker can write the files that name shims and workers. So only those are spared that belong to its own tree of tasks
or to one that is kin to it; a tree of the worker's own making does not count.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

from agentctl.adapters import processes
from agentctl.adapters.config import root_of_tree
from agentctl.adapters.files import read_json, read_quietly
from agentctl.adapters.locks import is_alive_held
from agentctl.adapters.paths import FilePath
from agentctl.adapters.processes import Identity, Life
from agentctl.adapters.taskdir import AgentDir, TaskDir
from agentctl.errors import AgentctlError, Damaged
from agentctl.supervision.environment import AGENT_DIR, COOKIE
from agentctl.supervision.kinship import are_kin
from agentctl.supervision.places import read_occupant
from agentctl.supervision.spec import read_spec

#: Before the folder of the worker on the command line of an undertaker, which is the same program.
BURY = "--bury"
#: The script that a shim's command line names, followed by the root task's directory.
_SHIM_SUFFIX = "agentctl/shim/__main__.py"
SHIM_SCRIPT = str(FilePath(os.path.realpath(__file__)).parent.parent / "shim/__main__.py")


def is_foreign(pid: int, agent: AgentDir, cookie: bytes | None) -> bool:
    """Tell whether a process below a worker is none of its own: a live shim, or another worker's process."""
    tree = guarded_tree(pid)
    if tree is None:
        other = _other_worker(pid, agent, cookie)
        tree = root_of_tree(other.task) if other is not None else None
    return tree is not None and are_kin(root_of_tree(agent.task), tree)


def guarded_tree(pid: int) -> TaskDir | None:
    """Return the root task in whose tree a process is a live shim that a slot names, or an undertaker; None for others.

    The word of the process is verified with the files.
    """
    arguments = processes.command_line(pid)
    # By its ending: another agentctl on this machine has its script elsewhere.
    if not any(part.endswith(_SHIM_SUFFIX) for part in arguments[:-1]):
        return None
    if BURY in arguments:
        buried = AgentDir(arguments[-1])
        tree, named = root_of_tree(buried.task), [processes.identity_from(read_quietly(buried.shim))]
    else:
        tree = TaskDir(arguments[-1])
        named = list(shims_of(tree.slots))
    me = processes.identify(pid)
    return tree if me is not None and me in named else None


def is_guardian(shim: Identity, root: TaskDir) -> bool:
    """Tell whether an identity that a file tells is that of a live shim or undertaker of a tree of tasks."""
    if processes.life_of(shim) is not Life.ALIVE:
        return False
    tree = guarded_tree(shim.pid)
    return tree is not None and tree.is_at(root.path)


def guarded_by(pid: int) -> AgentDir | None:
    """Return the worker that a live shim guards, as a place of its tree of tasks names it; None for all else."""
    arguments = processes.command_line(pid)
    if not any(part.endswith(_SHIM_SUFFIX) for part in arguments[:-1]) or BURY in arguments:
        return None
    me, root = processes.identify(pid), TaskDir(arguments[-1])
    with contextlib.suppress(OSError):
        for name in os.listdir(root.slots):
            occupant = read_occupant(root.slots / name)
            if occupant is not None and occupant.shim == me:
                agent = root.sibling(occupant.task_id).agent(occupant.instance)
                return agent if _guardian_of(agent) == me else None
    return None


def marked_by(environ: dict[bytes, bytes]) -> AgentDir | None:
    """Return the worker whose folder and cookie an environment has."""
    folder, cookie = environ.get(AGENT_DIR.encode()), environ.get(COOKIE.encode())
    if not folder or not cookie:
        return None
    agent = AgentDir(os.fsdecode(folder))
    return agent if read_quietly(agent.worker).get("cookie") == os.fsdecode(cookie) else None


def _other_worker(pid: int, agent: AgentDir, cookie: bytes | None) -> AgentDir | None:
    """Return the worker that a process claims to be of, if that is another one and the claim can be true.

    What a live shim guards is below that shim, and what had no leave to outlive its worker's end is gone by then.
    """
    environ = processes.environment_of(pid)
    if environ.get(COOKIE.encode()) in (None, cookie):
        return None
    other = marked_by(environ)
    if other is None or agent.is_at(other.path):
        return None
    is_at_large = not _keeps_children(other) if other.has_ended else _is_below_a_shim(other)
    return None if is_at_large else other


def _keeps_children(agent: AgentDir) -> bool:
    with contextlib.suppress(AgentctlError):
        return read_spec(agent.spec).keep_children
    return False


def _is_below_a_shim(agent: AgentDir) -> bool:
    """Tell whether a live shim guards a worker, and not an undertaker, whose child nothing is."""
    guardian = _guardian_of(agent)
    if guardian is None or processes.life_of(guardian) is not Life.ALIVE:
        return False
    return BURY not in processes.command_line(guardian.pid)


def _guardian_of(agent: AgentDir) -> Identity | None:
    """Return who guards a worker, as the file says that somebody holds."""
    with contextlib.suppress(OSError):
        return processes.identity_from(read_quietly(agent.shim)) if is_alive_held(agent.shim) else None
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
            occupant = read_occupant(slots / name)
            if occupant is not None and occupant[:2] == (agent.task.id, agent.instance):
                return occupant.shim
    return None
