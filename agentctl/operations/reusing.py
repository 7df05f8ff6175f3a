"""When one piece of work is the same as another: the same order, in the same folder, over the same files.

The files are those that git knows or would take up: a commit, what differs from it, and what is new. What git ignores,
what a submodule has beside its commit, what lies outside of the repository and the program's own version do not count.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

from agentctl.adapters.git import Git, GitError, git_in
from agentctl.adapters.taskdir import Root
from agentctl.drivers.order import Order
from agentctl.errors import Refused
from agentctl.operations.requests import SpawnRequest

_LIMIT_S = 60.0
#: Of an order, what is not the work: who does it, and where its session is.
_ASIDE = frozenset({"program", "instance", "taskId", "cwd", "session", "account", "mcpServers"})


def key_of(root: Root, request: SpawnRequest, order: Order | None, cwd: str) -> str:
    """Return what two requests share that ask for the same work.

    Raises:
        Refused: The folder is in no git repository: nobody can tell whether its files are the same.
    """
    told: dict[str, Any] = {key: value for key, value in order.to_json().items() if key not in _ASIDE} if order else {}
    work = {"order": told, "argv": list(request.argv), "env": dict(request.env), "cwd": os.path.realpath(cwd),
            "artifacts": list(request.artifacts), "files": _state_of(root, cwd)}  # fmt: skip
    text = json.dumps(work, sort_keys=True).encode("utf-8", "surrogatepass")
    return f"reuse-{hashlib.sha256(text).hexdigest()}"


def _state_of(root: Root, cwd: str) -> str:
    try:
        top = git_in(cwd, limit_s=_LIMIT_S).text("rev-parse", "--show-toplevel")
        return _digest(git_in(top, limit_s=_LIMIT_S), _ours(root, top))
    except GitError as error:
        raise Refused(
            f"--reuse cannot tell whether the files in {cwd} are the same: {error.message}",
            hint="it needs a git repository with a commit; leave --reuse out",
        ) from error


def _ours(root: Root, top: str) -> str:
    """Return the pathspec that leaves out the root, whose files change with every spawn."""
    path = os.path.relpath(os.path.realpath(root.path), os.path.realpath(top))
    return f":(exclude,top,literal){path}" if not path.startswith(os.pardir) else ":(exclude,top,literal).agentctl"


def _digest(git: Git, ours: str) -> str:
    found = hashlib.sha256(git.run("rev-parse", "HEAD"))
    differs = ("diff", "HEAD", "--binary", "--full-index", "--no-ext-diff", "--no-textconv", "--no-renames",
               "--ignore-submodules=dirty")  # fmt: skip
    found.update(git.run(*differs, "--", ".", ours))
    new = git.names("ls-files", "-z", "--others", "--exclude-standard", "--", ".", ours)
    for name in sorted(new):
        path = os.path.join(git.folder, name)
        found.update(b"\0" + os.fsencode(name) + b"\0" + _content(path))
    return found.hexdigest()


def _content(path: str) -> bytes:
    """Return the hash of what a new file holds, or where a link leads; of anything else only that it is there."""
    if os.path.islink(path):
        return os.fsencode(os.readlink(path))
    if not os.path.isfile(path):
        return b""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
