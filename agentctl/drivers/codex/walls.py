"""The permission profile of an agent that may write: Codex's `workspace-write`, with agentctl's files read-only.

The code relies on these facts, observed with the version in `DRIVER`:

- `:workspace` is `workspace-write` without what the person has configured for that. `.git`, `.codex` and `.agents` are
  read-only in it, and in each further writable folder.
- The deepest entry that covers a path decides, whatever the modes: `read` below `write` below `read`.
- An entry is a mount, so it cannot be renamed. A folder above it can: renaming that folder and making another one in
  its place would get around the wall. So each folder in between is an entry too.
- An entry with a pattern character (`*?[]`) is refused, except below `:workspace_roots`, where it is a plain path.
- If a read is denied, a permission to leave the sandbox has no effect: the command stays inside, without network.
  So no read is denied here.
- A symbolic link in a writable folder cannot be an entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentctl.domain.text.containment import lies_in
from agentctl.drivers.order import Order
from agentctl.drivers.values import list_in, object_in, text_in

PROFILE = "agentctl"
READ, WRITE = "read", "write"
_PATTERN = re.compile(r"[*?\[\]]")
_WORKSPACE = ":workspace_roots"
#: What the person may have excluded: the key in the config -> Codex's entry, and the name in the walls.
_TEMPORARY = {"exclude_slash_tmp": (":slash_tmp", "/tmp"), "exclude_tmpdir_env_var": (":tmpdir", "TMPDIR")}


def profile(order: Order, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the profile; `settings` is `sandbox_workspace_write` of the person's config."""
    workspace, closed = text_in(order.walls.get("workspace")), list(map(text_in, list_in(order.walls.get("closed"))))
    roots = [path for path in map(text_in, list_in(settings.get("writable_roots"))) if path]
    excluded = {key for key in _TEMPORARY if settings.get(key)}
    folders = object_in(order.walls.get("temporary"))
    temporary = [text_in(folders.get(name)) for key, (_, name) in _TEMPORARY.items() if key not in excluded]
    modes = dict.fromkeys(roots, WRITE)
    for path in closed:
        modes |= dict.fromkeys(_between(path, [workspace, *roots, *filter(None, temporary)], closed), WRITE)
    modes |= dict.fromkeys(closed, READ)
    modes |= dict.fromkeys(filter(None, [text_in(order.walls.get("outbox"))]), WRITE)
    files = {_TEMPORARY[key][0]: READ for key in sorted(excluded)} | _entries(modes, workspace, [*roots, *temporary])
    network = {"network": {"enabled": True}} if settings.get("network_access") else {}
    return {"extends": ":workspace", "filesystem": files, **network}


def link_in(order: Order) -> str | None:
    """Return why the walls cannot protect a workspace that may be written; None if they can."""
    links = [] if order.read_only else list_in(order.walls.get("links"))
    return (
        f"{links[0]} is a link, and Codex's sandbox cannot protect a link that the agent may replace" if links else None
    )


def _between(path: str, places: Iterable[str], closed: Sequence[str]) -> list[str]:
    """Return the folders between a closed path and the innermost writable place around it.

    >>> _between("/home/me/.config/agentctl", ["/home/me", "/tmp"], [])
    ['/home/me/.config']
    """
    around = max((place for place in places if lies_in(path, place)), key=len, default=None)
    steps: list[str] = []
    above = path.rpartition("/")[0]
    while around is not None and lies_in(above, around):
        steps.append(above)
        above = above.rpartition("/")[0]
    return [step for step in steps if not any(step == one or lies_in(step, one) for one in closed if one != path)]


def _entries(modes: Mapping[str, str], workspace: str, places: Sequence[str]) -> dict[str, Any]:
    """Return the entries of a profile; a path that Codex would refuse is left out unless it is needed."""
    inside = {path: mode for path, mode in modes.items() if lies_in(path, workspace)}
    files: dict[str, Any] = {
        path: mode
        for path, mode in modes.items()
        if path not in inside and (not _PATTERN.search(path) or _is_needed(path, mode, places))
    }
    if inside:
        files[_WORKSPACE] = {path[len(workspace.rstrip("/")) + 1 :]: mode for path, mode in inside.items()}
    return files


def _is_needed(path: str, mode: str, places: Sequence[str]) -> bool:
    """Return whether a path would be writable if it were not an entry."""
    return mode == READ and any(lies_in(path, place) for place in places)
