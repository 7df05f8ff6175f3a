"""Whether workers may be started from here: not from a sandbox with a pid namespace of its own.

A worker started there dies with the command (as in Codex's `workspace-write`), and nothing outside can judge it.
"""

from __future__ import annotations

from agentctl.adapters import processes
from agentctl.adapters.files import read_known
from agentctl.adapters.locks import is_alive_held
from agentctl.adapters.processes import Identity
from agentctl.adapters.taskdir import TreeDir, WorkerDir
from agentctl.errors import Argument, Refused, WithArguments
from agentctl.operations.where.calling import Caller
from agentctl.supervision.dispatch.slots import held_places


def refuse_in_sandbox(tree: TreeDir, parent: Caller | None) -> None:
    """Raise `Refused` where the calling worker, or a live shim of this tree of tasks, is in another pid namespace."""
    here = processes.pid_namespace()
    worker = processes.identity_from(read_known(parent.worker.process)) if parent is not None else None
    if _is_other(worker, here) or processes.is_in_sandbox() or any(_is_other(shim, here) for shim in _live_shims(tree)):
        raise Refused(
            "this process runs in a pid namespace of its own (a sandbox?): workers started here would die with it",
            hint=WithArguments(
                "spawn from outside of the sandbox, or keep the tasks of this one apart: ", Argument("root", "FOLDER")
            ),
        )


def is_in_sandbox_of(worker_dir: WorkerDir) -> bool:
    """Return whether this process may be in a worker's sandbox: neither in its pid namespace nor in the machine's."""
    worker, here = processes.identity_from(read_known(worker_dir.process)), processes.pid_namespace()
    return processes.is_in_sandbox() or (here != processes.INITIAL_NAMESPACE and _is_other(worker, here))


def _is_other(identity: Identity | None, here: str) -> bool:
    """Return whether a process of this machine and boot is in another pid namespace."""
    if identity is None or identity.machine != processes.machine_id() or identity.boot != processes.boot_id():
        return False
    return identity.pid_namespace != here


def _live_shims(tree: TreeDir) -> list[Identity]:
    places = [occupant for _, occupant in held_places(tree) if occupant.shim is not None]
    return [
        occupant.shim for occupant in places if occupant.shim and is_alive_held(tree.worker_at(occupant.worker_id).shim)
    ]
