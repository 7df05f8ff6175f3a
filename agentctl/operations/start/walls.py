"""The walls around an agent: what nothing within its sandbox may change, since it decides what is run outside."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agentctl.adapters.files import make_folder
from agentctl.adapters.git import entry_above
from agentctl.adapters.personal import config_folder, state_folder
from agentctl.adapters.taskdir import ROOT_NAME, Root, WorkerDir
from agentctl.domain.containment import lies_in
from agentctl.errors import AgentctlError, Refused
from agentctl.supervision.worker.environment import store_folder

#: As many as Linux follows, path_resolution(7).
_MOST_LINKS = 40


def walls_of(worker: WorkerDir, cwd: str, environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Return what a driver has to know of paths, all of them without links.

    Returns:
        {workspace, git, closed, inRoot, hidden, outbox, temporary, links}. `git` is the `.git` that is found from there
        now, or None: a later one may be of the agent's own making. `closed` may not be changed, `hidden` not even
        be read; `inRoot` are the parts of the root where the workspace lies within it (a worktree). `outbox` is the one
        place that may be written in there. `temporary` are the folders that sandboxes leave open. `links` stand in the
        workspace on the way to what is closed: whoever may replace a link is not held by what it leads to.
    """
    cwd, root = os.path.realpath(cwd), Root(os.path.realpath(worker.task.root.path))
    store = _store(environ)
    used = [str(worker.task.root.path), *_own_folders(environ), *store]
    here = os.path.join(cwd, ROOT_NAME)
    if os.path.isdir(here):
        used.append(here)
    temporary = {"/tmp": "/tmp"}
    if "TMPDIR" in environ:
        temporary["TMPDIR"] = environ["TMPDIR"]
    return {
        "workspace": cwd,
        "git": entry_above(cwd),
        "closed": _each(map(os.path.realpath, used)),
        "inRoot": [str(part) for part in root.parts()] if lies_in(cwd, root.path) else [],
        "hidden": _each(map(os.path.realpath, store)),
        "outbox": os.path.join(os.path.realpath(worker.path), worker.outbox.name),
        "temporary": {name: os.path.realpath(path) for name, path in temporary.items()},
        "links": _each(link for path in used for link in _links(path) if lies_in(link, cwd)),
    }


def refuse_behind_walls(worker: WorkerDir, cwd: str, walls: Mapping[str, Any]) -> None:
    """Raise `Refused` where the workspace of an agent, which it may change, is part of what is closed.

    Only its own worktree may be, which lies within the root; the folders above that are also those of others.
    """
    workspace, trees = walls["workspace"], os.path.realpath(worker.task.root.worktrees)
    is_worktree = lies_in(workspace, trees) and os.path.dirname(workspace) != trees
    around = [path for path in walls["closed"] if path == workspace or lies_in(workspace, path)]
    if around and not is_worktree:
        raise Refused(
            f"no agent that may write is started in {cwd}: what lies in {around[0]} decides what is run outside of it",
            hint="start it in another folder (--cwd), or one that may only read: --agent explore",
        )


def _own_folders(environ: Mapping[str, str]) -> list[str]:
    """Return the person's own folders, made: one that is missing could be made from within."""
    folders = [str(config_folder(environ)), str(state_folder(environ))]
    for folder in folders:
        with contextlib.suppress(AgentctlError, OSError):  # What cannot be made here cannot be made from within.
            make_folder(folder)
    return folders


def _store(environ: Mapping[str, str]) -> list[str]:
    """Return the folder of the waiting environments; nothing where somebody else has it, and so nothing waits in it."""
    with contextlib.suppress(Refused, OSError):
        return [str(store_folder(environ))]
    return []


def _links(path: str) -> Iterator[str]:
    """Yield the links on the way to a path, as the kernel follows them, each by its own real place.

    Where a link leads, there may be further ones.
    """
    place, names, links = "/", _parts(path), 0
    while names and links <= _MOST_LINKS:
        name = names.pop()
        if name == os.pardir:
            place = os.path.dirname(place)
            continue
        place = os.path.join(place, name)
        if os.path.islink(place):
            yield place
            links += 1
            target = os.readlink(place)
            names += _parts(target)
            place = "/" if os.path.isabs(target) else os.path.dirname(place)


def _parts(path: str) -> list[str]:
    """Return the names in a path, the first one last."""
    return [name for name in reversed(path.split("/")) if name not in ("", os.curdir)]


def _each(paths: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(paths))
