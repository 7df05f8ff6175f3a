"""The walls around an agent: the files that nothing in its sandbox may change, as they decide what runs outside it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agentctl.adapters.files import make_folders
from agentctl.adapters.git import entry_above
from agentctl.adapters.personal import config_folder, state_folder
from agentctl.adapters.taskdir import ROOT_NAME, Root, WorkerDir
from agentctl.domain.text.containment import lies_in
from agentctl.errors import AgentctlError, Argument, Refused, WithArguments
from agentctl.supervision.worker.environment import store_folder

#: As many as Linux follows, path_resolution(7).
_MOST_LINKS = 40


def walls_of(worker: WorkerDir, cwd: str, environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Return the paths that a driver has to know, all of them resolved.

    Returns:
        {workspace, git, closed, inRoot, hidden, outbox, temporary, links}. `git` is the `.git` found from the workspace
        now, or None: the agent may make one later. `closed` may not be changed, `hidden` not even be read. `inRoot` are
        the parts of the root if the workspace lies within it (a worktree). `outbox` is the only folder there that may
        be written. `temporary` are the folders that sandboxes leave open. `links` are those in the workspace that lead
        to closed paths: an agent that can replace a link could get around the wall behind it.
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


def joined_walls(node: Mapping[str, Any], head: Mapping[str, Any], launches: str) -> dict[str, Any]:
    """Return the walls around an agent on a node: those of the node, and those that it would have at the head.

    A node's own root is a folder of the launch. The root of the agent's task may be seen there as well, and so are the
    launches, in which the head is asked to carry out commands.
    """
    both = {name: _each([*node[name], *(head.get(name) or ())]) for name in ("closed", "inRoot", "hidden", "links")}
    links = [link for link in _links(launches) if lies_in(link, node["workspace"])]
    return {
        **node, **both,
        "closed": _each([*both["closed"], os.path.realpath(launches)]), "links": _each([*both["links"], *links]),
    }  # fmt: skip


def refuse_behind_walls(worker: WorkerDir, cwd: str, walls: Mapping[str, Any]) -> None:
    """Raise `Refused` where the workspace of an agent, which it may change, contains closed paths or is one.

    Only its own worktree, which lies within the root, is allowed; the folders above it also hold those of others.
    """
    workspace, trees = walls["workspace"], os.path.realpath(worker.task.root.worktrees)
    is_worktree = lies_in(workspace, trees) and os.path.dirname(workspace) != trees
    around = [path for path in walls["closed"] if path == workspace or lies_in(workspace, path)]
    if around and not is_worktree:
        raise Refused(
            f"an agent that may write cannot be started in {cwd}: files in {around[0]} decide what runs outside of the"
            " agent",
            hint=WithArguments(
                "start it in another folder (",
                Argument("cwd"),
                "), or start one that may only read: ",
                Argument("agent", "explore"),
            ),
        )


def _own_folders(environ: Mapping[str, str]) -> list[str]:
    """Make and return the person's own folders: the agent could make one that is missing."""
    folders = [str(config_folder(environ)), str(state_folder(environ))]
    for folder in folders:
        with contextlib.suppress(AgentctlError, OSError):  # If it cannot be made here, the agent cannot make it either.
            make_folders(folder)
    return folders


def _store(environ: Mapping[str, str]) -> list[str]:
    """Return the folder of the waiting environments; none if it belongs to somebody else, as nothing waits there."""
    with contextlib.suppress(Refused):
        return [str(store_folder(environ))]
    return []


def _links(path: str) -> Iterator[str]:
    """Yield the links on the way to a path, as the kernel follows them, each by its own real path.

    The target of a link may contain further links.
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
