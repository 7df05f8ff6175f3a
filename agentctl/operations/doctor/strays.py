"""Launches that an engine still carries out though no worker wants them any more."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from agentctl.adapters.files import read_known
from agentctl.adapters.paths import FilePath
from agentctl.adapters.processes import machine_id
from agentctl.adapters.taskdir import LaunchDir, Root, names_in
from agentctl.operations.where.findings import Finding, finding
from agentctl.operations.where.ownership import is_own
from agentctl.runners.runner import PREFIX, Runner
from agentctl.supervision.worker.environment import store_folder
from agentctl.supervision.worker.placed import launch_of

_MOST_LAUNCHES = 10_000
#: An engine shows a job for some seconds after its program has ended.
_SETTLES_S = 30.0


def examine_strays(runner: Runner, root: Root, folder: FilePath | None, *, fix: bool) -> Iterator[Finding]:
    """Yield the launches that nobody wants, and those of which that is not known: these are never killed.

    Args:
        folder: Where launches are exchanged, if that is not in the folders of the workers.
    """
    known = dict(_launches(root, folder))
    wanted = {launch_id for launch_id, launch in known.items() if not _is_over(launch)}
    wanted |= set(_with_keys()) - known.keys()  # Of a worker that is lost, the key stays.
    for launch_id in sorted(runner.reconcile(wanted)):
        if launch_id in known:
            if fix:
                runner.kill(launch_id)
            what = f"{runner.name} still carries out {PREFIX}{launch_id}, whose worker has ended here"
            next_ = f"agentctl doctor --runner {runner.name} --fix ends it"
            yield finding("warning", what, known[launch_id].path, next_, fixed=fix)
        else:
            what = f"{runner.name} carries out {PREFIX}{launch_id}, which is unknown here"
            next_ = "it may belong to another root or another machine; if not, cancel it by its name"
            yield finding("note", what, "", next_)


def _launches(root: Root, folder: FilePath | None) -> Iterator[tuple[str, LaunchDir]]:
    """Yield the launches of a root by id, and those of all roots that are exchanged in `folder`."""
    for task in map(root.task, root.task_ids()) if root.path.is_dir() else ():
        for instance in task.instances() if is_own(task) else ():
            worker = task.worker(instance)
            for name in names_in(worker.launches, _MOST_LAUNCHES):
                yield name, LaunchDir(worker.launches / name)
            last = launch_of(worker)
            if last is not None:
                yield last.id, last
    if folder is not None:
        yield from ((name, LaunchDir(folder / name)) for name in names_in(folder, _MOST_LAUNCHES))


def _is_over(launch: LaunchDir) -> bool:
    """Return whether the end of a launch is known at the head; or the worker was removed that it was for."""
    try:
        return abs(time.time() - os.stat(launch.verdict).st_mtime) > _SETTLES_S
    except FileNotFoundError:
        order = read_known(launch.order)
        return order.get("machine") == machine_id() and not os.path.isdir(str(order.get("worker")))


def _with_keys() -> Iterator[str]:
    """Yield the launches of any root that this machine follows: their keys are in memory (`seal.py`)."""
    for name in names_in(store_folder(), _MOST_LAUNCHES):
        if name.startswith("launch-") and name.endswith(".key"):
            yield name.removeprefix("launch-").removesuffix(".key")
