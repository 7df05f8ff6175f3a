"""How a path below a root is on disk: relative to the root, so that it is right wherever the root lies later."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from agentctl.domain.text.containment import lies_in
from agentctl.lean import Any


def on_disk(path: object, root: str) -> object:
    """Return what is written for a path: of one below the root, only what is below it.

    >>> [on_disk(path, "/p/.agentctl") for path in ("/p/.agentctl/worktrees/t/a", "/p/a", "/p/.agentctl/../a", None)]
    ['worktrees/t/a', '/p/a', '/p/.agentctl/../a', None]
    """
    if not isinstance(path, str) or not lies_in(path, root) or os.path.normpath(path) != path:
        return path
    return path[len(root) + 1 :]


def from_disk(written: object, root: str) -> object:
    """Return the whole path for what is written; what leads out of the root stays as it is.

    >>> [from_disk(path, "/p/.agentctl") for path in ("worktrees/t/a", "/p/a", "../a", 7)]
    ['/p/.agentctl/worktrees/t/a', '/p/a', '../a', 7]
    """
    if not isinstance(written, str) or not written or os.path.isabs(written):
        return written
    path = os.path.normpath(f"{root}/{written}")
    return path if lies_in(path, root) else written


def with_artifacts(result: Mapping[str, Any], change: Callable[[object, str], object], root: str) -> dict[str, Any]:
    """Return a result.json in which `on_disk` or `from_disk` has changed the paths of the files that it names."""
    declared = result.get("artifacts")
    if not isinstance(declared, list):
        return dict(result)
    files = (
        {**one, "path": change(one["path"], root)} if isinstance(one, dict) and "path" in one else one
        for one in declared
    )
    return {**result, "artifacts": list(files)}
