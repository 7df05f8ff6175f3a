"""Shims and workers whose task is gone from the disk, though they run: what shows it, and when they may be ended.

No file names them any more, so every process of the machine is looked at. A worker's process carries its folder and
cookie in its environment (`supervision/life/belonging.py`), a shim has the folder of its root task on its command line.
What looks after itself ends within seconds (`supervision/worker/whereabouts.py`), so only what outlasts a look counts:
a worker whose shim was killed, a shim that is stopped.

Only processes with this process's own view of the disk count: in a container, the same path is another folder. They are
ended only if one of them holds a file open that was removed from that very task: a file system that was unmounted shows
nothing of the kind.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

from agentctl.adapters import descent, processes
from agentctl.adapters.paths import FilePath
from agentctl.adapters.processes import Identity
from agentctl.adapters.taskdir import Root, TaskDir, WorkerDir
from agentctl.lean import NamedTuple
from agentctl.operations.where.findings import Finding, finding
from agentctl.supervision.life.belonging import Claim
from agentctl.supervision.life.process_tree import UnsupervisedTree
from agentctl.supervision.life.strangers import shim_command
from agentctl.supervision.worker.environment import AGENT_DIR, COOKIE

#: By then a shim has noticed that its task is gone, has waited out two short grace periods, and has left.
_NOTICES_S = 4.0
_LOOK_S = 0.2
_GRACE_S, _KILL_S = 2.0, 3.0
_DELETED = " (deleted)"


class _Orphan(NamedTuple):
    """A process that runs for a task that is gone."""

    process: Identity
    #: The folder on its command line, or in its environment.
    folder: FilePath
    #: None of a shim.
    cookie: bytes | None
    command: list[str]

    @property
    def task(self) -> FilePath:
        """The folder of its task."""
        return self.folder if self.cookie is None else WorkerDir(self.folder).task.path


def examine_orphans(root: Root | None, *, fix: bool) -> Iterator[Finding]:
    """Yield a finding for each process of this user whose task is gone; with `fix`, end those that are proven to be.

    Args:
        root: Shims without a worker are named if they are of this root: nothing else says whose they are.
    """
    found = _lasting(root)
    proven = {orphan.task for orphan in found if _holds_removed(orphan)}
    left = _ended([orphan for orphan in found if fix and orphan.task in proven])
    for orphan in found:
        pid, is_proven = orphan.process.pid, orphan.task in proven
        kind = "shim" if orphan.cookie is None else f"process of the worker {orphan.folder.name}"
        what = f"a {kind} is alive, and its folder is gone: pid {pid}, {' '.join(orphan.command)[:120]}"
        helps = "agentctl doctor --fix" if is_proven else f"kill -9 {pid}, if it is not wanted"
        yield finding("warning", what, orphan.folder, helps, fixed=fix and is_proven and orphan not in left)


def _lasting(root: Root | None) -> list[_Orphan]:
    """Return those that are still there after a while, if there are any at all."""
    found, until = _look(root), time.monotonic() + _NOTICES_S
    while found and time.monotonic() < until:
        time.sleep(_LOOK_S)
        found = [orphan for orphan in found if processes.life_of(orphan.process) is processes.Life.ALIVE]
    return found


def _look(root: Root | None) -> list[_Orphan]:
    """Return the processes whose task is gone: shims, and workers that no shim looks after."""
    if not processes.LINUX:
        return []
    view = _view_of("self")
    pids = [pid for pid in processes.all_pids() if _view_of(pid) == view]
    shims = {pid: command for pid in pids if (command := shim_command(pid))}
    orphans = []
    for pid in pids:
        orphan = _worker_of(pid, root) if pid not in shims else None
        if orphan is not None and pid != os.getpid():
            orphans.append(orphan)
    above = {above for orphan in orphans for above in descent.pids_above(orphan.process.pid) if above in shims}
    for pid, command in shims.items():
        me = processes.identify(pid)
        is_ours = pid in above or (root is not None and _lies_in(command[-1], root.path))
        if is_ours and me is not None and not TaskDir(command[-1]).exists:
            orphans.append(_Orphan(me, FilePath(command[-1]), None, command))
    return orphans


def _view_of(pid: int | str) -> tuple[str, ...] | None:
    """Return what decides which files and processes one sees; None if that cannot be read."""
    try:
        return (*(os.readlink(f"/proc/{pid}/ns/{kind}") for kind in ("mnt", "pid")), os.readlink(f"/proc/{pid}/root"))
    except OSError:
        return None


def _worker_of(pid: int, root: Root | None) -> _Orphan | None:
    """Return a process of a worker whose folder or task is gone, if it is of this person or this root."""
    environ = processes.environment_of(pid)
    folder, cookie = environ.get(AGENT_DIR.encode()), environ.get(COOKIE.encode())
    me = processes.identify(pid) if folder and cookie else None
    if me is None or folder is None:
        return None
    path = FilePath(os.fsdecode(folder))
    is_ours = environ.get(b"HOME") == os.environb.get(b"HOME") or (root is not None and _lies_in(path, root.path))
    is_gone = _is_of_worker(path) and not (WorkerDir(path).task.exists and path.exists())
    return _Orphan(me, path, cookie, processes.command_line_of(pid)) if is_ours and is_gone else None


def _is_of_worker(path: FilePath) -> bool:
    """Return whether a path is that of a worker's folder in some root: anybody may set the variable to anything."""
    parts = path.split("/")
    return os.path.isabs(path) and len(parts) > 4 and (parts[-4], parts[-2]) == ("tasks", "agents")


def _lies_in(path: str, folder: str) -> bool:
    return path.startswith(f"{folder}/")


def _holds_removed(orphan: _Orphan) -> bool:
    """Return whether a process has a file of its task open that was removed."""
    folder = f"/proc/{orphan.process.pid}/fd"
    try:
        links = [os.readlink(f"{folder}/{name}") for name in os.listdir(folder)]
    except OSError:
        return False
    return any(link.endswith(_DELETED) and _lies_in(link, orphan.task) for link in links)


def _ended(orphans: list[_Orphan]) -> list[_Orphan]:
    """End these, workers first: SIGTERM, then SIGKILL; return those that live on."""
    workers = {(orphan.folder, orphan.cookie) for orphan in orphans if orphan.cookie is not None}
    trees = [UnsupervisedTree(Claim(WorkerDir(folder), None, cookie, 0)) for folder, cookie in workers]
    for tree in trees:
        tree.terminate()
    _until(trees, _GRACE_S)
    for tree in trees:
        tree.kill()
    _until(trees, _KILL_S)
    for orphan in orphans:
        if orphan.cookie is None:
            processes.signal_process(orphan.process, signal.SIGKILL)
    until = time.monotonic() + _KILL_S
    while (left := [one for one in orphans if processes.life_of(one.process) is processes.Life.ALIVE]) and (
        time.monotonic() < until
    ):
        time.sleep(_LOOK_S)
    return left


def _until(trees: list[Any], seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until and any(tree.living() for tree in trees):
        time.sleep(_LOOK_S)
