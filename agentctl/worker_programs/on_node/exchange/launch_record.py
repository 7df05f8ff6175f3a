"""The launch of an attempt: found as another stand-in has left it, or made, with everything that the node needs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping

from agentctl.adapters import processes
from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import (
    create_whole,
    make_folder,
    make_folders,
    read_known,
    set_aside,
    storage_errors,
    to_json,
    write_whole,
)
from agentctl.adapters.opening import read_bytes
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import LaunchDir, WorkerDir
from agentctl.domain.placement import Placement, placement_from
from agentctl.errors import AgentctlError, Damaged
from agentctl.lean import Any
from agentctl.supervision.life.belonging import record_of
from agentctl.supervision.worker import environment
from agentctl.supervision.worker.placed import launch_of
from agentctl.supervision.worker.spec import WorkerSpec, read_spec
from agentctl.worker_programs.on_node.exchange.file_mirror import sizes_of
from agentctl.worker_programs.on_node.exchange.seal import known_key, new_key, opened, sealed

#: The fields of a spec that mean something at the head alone.
_OF_THE_HEAD: Mapping[str, Any] = {
    "parent": None, "parent_task": None, "after": [], "after_any": False, "retries": 0, "key": None, "depth": 0,
    "placement": None, "tree_limits": None, "keep_children": False, "max_park_s": 0,
}  # fmt: skip
#: Begins the entry of the environment that is not a variable, but the key of the launch.
KEY_ENTRY = b"="
#: Who ended a worker that its engine told that its time is nearly over.
BY_TIME = "the engine's time limit"


def placement_of(worker: WorkerDir) -> Placement:
    """Return how a worker is placed.

    Raises:
        Damaged: Its spec does not say.
    """
    value = read_spec(worker.spec).placement
    if value is None:
        raise Damaged(f"{worker.spec} does not say where it runs", hint="spawn it again")
    return placement_from(value)


def take_up(worker: WorkerDir) -> LaunchDir:
    """Return the launch of the attempt that the worker is in; made durable before any engine hears of it."""
    attempt = record_of(worker).attempt
    known = launch_of(worker)
    if known is not None and read_known(worker.launch).get("attempt") == attempt:
        restore_folders(known)
        return known
    return _made(worker, attempt)


def _folders_of(launch: LaunchDir) -> list[FilePath]:
    """Return the folders in which the head tells the node something."""
    names = ("answers", "inbox", "replies")
    return [launch.path, launch.path / "to-node", *(launch.path / "to-node" / name for name in names)]


def restore_folders(launch: LaunchDir) -> None:
    """Make again what the worker, whose folders these are too, has removed: without them nothing could be told.

    What it has put in their place is set aside.
    """
    folders = _folders_of(launch)
    for path in (*folders, launch.path / "node", launch.path / "calls"):
        with contextlib.suppress(AgentctlError, OSError):
            if os.path.lexists(path) and (os.path.islink(path) or not os.path.isdir(path)):
                set_aside(path)
    for path in folders:
        with contextlib.suppress(AgentctlError, OSError):
            make_folder(path)


def _made(worker: WorkerDir, attempt: int) -> LaunchDir:
    spec, launch_id = read_spec(worker.spec), os.urandom(8).hex()
    folder = placement_of(worker).folder
    base = FilePath(folder) / f"agentctl-{os.geteuid()}" if folder else worker.launches
    launch = LaunchDir(base / launch_id)
    make_folders(base) if folder else make_folder(base)
    for path in _folders_of(launch):
        make_folder(path)
    key = new_key(launch_id)
    write_whole(launch.environment, _entries(key))
    write_whole(launch.order, to_json(_order(worker, spec, attempt)))
    write_whole(launch.heartbeat, b"", durable=False)  # Over NFS, a file that is missing would be taken for missing on.
    write_whole(
        worker.launch, to_json({"id": launch_id, "path": str(launch.path), "attempt": attempt, "at": now_iso()})
    )
    return launch


def _entries(key: bytes) -> bytes:
    """Return the environment of this process, which is the worker's, with the key of the launch before it."""
    environ = {
        name: value for name, value in os.environb.items() if not name.startswith(environment.OWN_PREFIX.encode())
    }
    return KEY_ENTRY + key.hex().encode() + b"\0" + environment.pack(environ)


def _order(worker: WorkerDir, spec: WorkerSpec, attempt: int) -> dict[str, Any]:
    return {
        "worker": str(worker.path), "taskId": worker.task.id, "instance": worker.instance, "attempt": attempt,
        "head": os.uname().nodename, "machine": processes.machine_id(), "sizes": sizes_of(worker),
        "isHeld": placement_of(worker).ahead > 0,
        "session": read_known(worker.session).get("session") if attempt > 1 else None,
        "spec": spec._replace(**_OF_THE_HEAD).to_json(),
    }  # fmt: skip


def claimed(launch: LaunchDir, by: Mapping[str, Any]) -> bool:
    """Claim a launch for a node; return whether nobody had."""
    return create_whole(launch.claim, to_json({**by, "at": now_iso()}))


def claimed_by_head(launch: LaunchDir) -> bool:
    """Claim a launch so that no node can; return whether nobody had, and nothing has begun."""
    claim, key = {"by": "head", "at": now_iso()}, known_key(launch.id)
    is_first = create_whole(launch.claim, to_json(claim if key is None else sealed(key, "claim", claim)))
    return is_first and _is_untouched(launch)


def is_withdrawn(launch: LaunchDir) -> bool:
    """Return whether the head has claimed a launch, and nothing has begun."""
    claim, key = read_known(launch.claim), known_key(launch.id)
    is_of_head = key is None or opened(key, "claim", claim) is not None
    return claim.get("by") == "head" and is_of_head and _is_untouched(launch)


def _is_untouched(launch: LaunchDir) -> bool:
    """Return whether no node has taken the environment of a launch, which it does as soon as it has claimed it.

    The claim alone does not tell: a worker may have removed it, so as to be taken for one that has not begun.
    """
    key = known_key(launch.id)
    begin = KEY_ENTRY + (b"" if key is None else key.hex().encode() + b"\0")
    with storage_errors(launch.environment, "read"):
        try:
            return read_bytes(launch.environment).startswith(begin)
        except (FileNotFoundError, NotADirectoryError, Damaged):
            return False
