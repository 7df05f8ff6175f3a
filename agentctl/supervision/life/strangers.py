"""Foreign processes: those below a worker that are not its own, but live shims, or processes of other workers.

A worker can write the files that name shims and workers; in a tree of tasks of its own making, that leaves no trace in
the tree that it is in. So a shim of another tree is spared only if this tree has a note of that very process, made by
the one that started it. A process of another tree's worker is spared only if that worker is a child of this one.
"""

from __future__ import annotations

import contextlib
import os

import agentctl
from agentctl.adapters import descent, processes
from agentctl.adapters.files import make_folder, read_known, write_whole
from agentctl.adapters.locks import is_alive_held
from agentctl.adapters.paths import FilePath
from agentctl.adapters.processes import Identity, Life
from agentctl.adapters.taskdir import LaunchDir, TreeDir, WorkerDir
from agentctl.adapters.treedir import tree_at, tree_of
from agentctl.errors import AgentctlError, StorageError
from agentctl.supervision.queue.places import names_shim, occupant_by_shim
from agentctl.supervision.worker.environment import AGENT_DIR, COOKIE
from agentctl.supervision.worker.kinship import is_enlisted
from agentctl.supervision.worker.spec import read_spec

#: The option before the worker's folder on the command line of an undertaker, which is the same program.
BURY = "--bury"
#: The option before the environments' folder and the root task's directory on that of a waker, the same program.
WAKE = "--wake"
#: The same on that of a sender of notices.
TELL = "--tell"
_SHIM_SUFFIX = "agentctl/shim/__main__.py"
#: The program of a post, and the option before the folder of its launch: an engine may have started it on this machine.
_POST_SUFFIX, POST = "agentctl/worker_programs/on_node/__main__.py", "--post"
#: The script that a shim's command line names, followed by the root task's directory.
SHIM_SCRIPT = str(FilePath(os.path.realpath(agentctl.__file__)).parent / "shim/__main__.py")


def is_foreign(pid: int, worker: WorkerDir, cookie: bytes | None) -> bool:
    """Return whether a process below a worker is not its own: a live shim, or another worker's process."""
    here, other_tree = tree_of(worker.task), guarded_tree(pid)
    if other_tree is not None:
        return here.is_at(other_tree.path) or is_noted(here, processes.identify(pid))
    other = _other_worker(pid, worker, cookie)
    return other is not None and (here.is_at(tree_of(other.task).path) or is_enlisted(worker, other))


def note_guardian(tree: TreeDir, guardian: Identity) -> None:
    """Note a guardian of a tree of tasks in the other trees whose workers are above this process.

    Call this before it is named in its own tree: from then on it is found, and must be spared. Once the process that
    started it ends, it may become a child of any shim that is above this process now.
    """
    for above in _trees_above(tree):
        with contextlib.suppress(
            AgentctlError, OSError
        ):  # A full disk: what is started is not worse off than the rest.
            make_folder(above.kin)
            _forget_gone(above.kin)
            write_whole(above.kin / _note_of(guardian), processes.identity_text(guardian), durable=False)


def is_noted(tree: TreeDir, guardian: Identity | None) -> bool:
    """Return whether a tree of tasks has a note of a guardian of another tree."""
    return guardian is not None and processes.identity_from(read_known(tree.kin / _note_of(guardian))) == guardian


def _note_of(guardian: Identity) -> str:
    return f"{guardian.pid}-{guardian.start}"


def _forget_gone(notes: FilePath) -> None:
    for name in os.listdir(notes):
        is_note = name.replace("-", "", 1).isdigit()  # And not a temporary file that is about to become one.
        noted = processes.identity_from(read_known(notes / name))
        if is_note and (noted is None or processes.life_of(noted) is Life.GONE):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(notes / name)


def _trees_above(tree: TreeDir) -> list[TreeDir]:
    """Return the other trees of tasks whose workers are above this process, or which it claims to belong to."""
    folder = os.environ.get(AGENT_DIR)
    found = [tree_of(WorkerDir(folder).task)] if folder else []
    found += filter(None, map(guarded_tree, descent.pids_above(os.getpid())))
    others: list[TreeDir] = []
    for one in found:
        if one.exists and not any(one.is_at(known.path) for known in (tree, *others)):
            others.append(one)
    return others


def guarded_tree(pid: int) -> TreeDir | None:
    """Return the root task in whose tree a process is a live shim that a place names, or another guardian.

    The others are an undertaker, a waker and a sender. None for any other process: what it says of itself is verified
    with the files.

    Raises:
        StorageError: They cannot be read.
    """
    try:
        return _verified_tree(pid)
    except StorageError as error:
        if _is_closed(pid, error):
            return None
        raise


def _is_closed(pid: int, error: StorageError) -> bool:
    """Return whether a process is of another user, who keeps their files closed: no tree of this user's has it."""
    return isinstance(error.__cause__, PermissionError) and processes.user_of(pid) != os.geteuid()


def _verified_tree(pid: int) -> TreeDir | None:
    arguments = processes.command_line_of(pid)
    if POST in arguments and any(part.endswith(_POST_SUFFIX) for part in arguments[:-1]):
        return _tree_of_launch(LaunchDir(arguments[-1]), pid)
    # Only the end of the path is compared: another agentctl on this machine has its script elsewhere.
    if not any(part.endswith(_SHIM_SUFFIX) for part in arguments[:-1]):
        return None
    me = processes.identify(pid)
    if me is None:
        return None
    if BURY in arguments:
        buried = WorkerDir(arguments[-1])
        tree, is_named = tree_of(buried.task), processes.identity_from(read_known(buried.shim)) == me
    elif {WAKE, TELL} & set(arguments):
        tree = tree_at(arguments[-1])
        named = tree.waker if WAKE in arguments else tree.sender
        is_named = processes.identity_from(read_known(named)) == me
    else:
        tree = tree_at(arguments[-1])
        is_named = names_shim(tree.slots, me)
    return tree if is_named else None


def _tree_of_launch(launch: LaunchDir, pid: int) -> TreeDir | None:
    """Return the root task of the worker whose launch a process carries out, as its claim says; None if it does not."""
    folder, me = read_known(launch.order).get("worker"), processes.identify(pid)
    if not isinstance(folder, str) or me is None:
        return None
    is_named = processes.identity_from(read_known(launch.claim).get("process")) == me
    return tree_of(WorkerDir(folder).task) if is_named else None


def is_guardian(shim: Identity, tree: TreeDir) -> bool:
    """Return whether an identity from a file is that of a live shim, undertaker, waker or sender of a tree of tasks."""
    if processes.life_of(shim) is not Life.ALIVE:
        return False
    guarded = guarded_tree(shim.pid)
    return guarded is not None and guarded.is_at(tree.path)


def guarded_by(pid: int) -> WorkerDir | None:
    """Return the worker that a live shim guards, as a place of its tree of tasks names it; None for other processes.

    Raises:
        StorageError: The places cannot be read.
    """
    try:
        return _verified_worker(pid)
    except StorageError as error:
        if _is_closed(pid, error):
            return None
        raise


def _verified_worker(pid: int) -> WorkerDir | None:
    arguments = processes.command_line_of(pid)
    if not _is_of_a_shim(arguments):
        return None
    me, tree = processes.identify(pid), tree_at(arguments[-1])
    occupant = occupant_by_shim(tree.slots, me)
    worker = occupant and tree.worker_at(occupant.worker_id)
    return worker if worker is not None and _guardian_of(worker) == me else None


def seems_a_shim(pid: int) -> bool:
    """Return whether a process has the command line of a shim; nothing else is looked at, as a worker can write it."""
    return bool(shim_command(pid))


def shim_command(pid: int) -> list[str]:
    """Return the command line of a process if it is that of a shim, by one look; [] if not, or if the process ended."""
    arguments = processes.command_line_of(pid)
    return arguments if _is_of_a_shim(arguments) else []


def _is_of_a_shim(arguments: list[str]) -> bool:
    return any(part.endswith(_SHIM_SUFFIX) for part in arguments[:-1]) and not {BURY, WAKE, TELL} & set(arguments)


def marked_by(environ: dict[bytes, bytes]) -> WorkerDir | None:
    """Return the worker whose folder and cookie an environment has."""
    folder, cookie = environ.get(AGENT_DIR.encode()), environ.get(COOKIE.encode())
    if not folder or not cookie:
        return None
    worker = WorkerDir(os.fsdecode(folder))
    try:
        known = read_known(worker.process)
    except StorageError as error:
        if isinstance(error.__cause__, PermissionError):
            return None  # Another user's, with the environment of whose worker this was called.
        raise
    return worker if known.get("cookie") == os.fsdecode(cookie) else None


def _other_worker(pid: int, worker: WorkerDir, cookie: bytes | None) -> WorkerDir | None:
    """Return the worker that a process claims to belong to, if that is another one and the claim can be true.

    While a live shim guards that worker, its processes are below that shim; after its end only kept ones are left.
    """
    environ = processes.environment_of(pid)
    if environ.get(COOKIE.encode()) in (None, cookie):
        return None
    other = marked_by(environ)
    if other is None or worker.is_at(other.path):
        return None
    is_at_large = not _keeps_children(other) if other.has_ended else _is_below_a_shim(other)
    return None if is_at_large else other


def _keeps_children(worker: WorkerDir) -> bool:
    with contextlib.suppress(AgentctlError):
        return read_spec(worker.spec).keep_children
    return False


def _is_below_a_shim(worker: WorkerDir) -> bool:
    """Return whether a live shim guards a worker, and not an undertaker, which has no children."""
    guardian = _guardian_of(worker)
    if guardian is None or processes.life_of(guardian) is not Life.ALIVE:
        return False
    return BURY not in processes.command_line_of(guardian.pid)


def _guardian_of(worker: WorkerDir) -> Identity | None:
    """Return who guards a worker, as its shim.json says while its lock is held."""
    return processes.identity_from(read_known(worker.shim)) if is_alive_held(worker.shim) else None
