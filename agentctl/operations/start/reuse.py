"""Makes the key by which `--reuse` recognizes the same work: the same order, in the same folder, over the same files.

The files are those that git tracks or would add: the commit, changed files and new ones. Ignored files, changes in a
submodule beyond its commit, files outside of the repository and the program's own version do not count.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Sequence

from agentctl.adapters.git import Git, GitError, git_in
from agentctl.adapters.opening import open_plain
from agentctl.adapters.taskdir import Root
from agentctl.drivers.order import Order
from agentctl.errors import Argument, Refused, WithArguments
from agentctl.operations.start.requests import SpawnRequest

_LIMIT_S = 60.0
#: How much uncommitted data is read at most, in some seconds: a repository may come with a file of a tebibyte.
_MOST_BYTES = 1 << 30
#: Fields of an order that are not the work: who does it, and where its session is.
_ASIDE = frozenset(
    {"program", "instance", "taskId", "cwd", "session", "account", "accounts", "mcpServers", "rulesGiven"}
)


def work_key(root: Root, request: SpawnRequest, order: Order | None, cwd: str) -> str:
    """Return a key that two requests share if they ask for the same work.

    Raises:
        Refused: The folder is not in a git repository, so its files cannot be compared.
    """
    fields = order.to_json() if order is not None else {}
    asked = {key: value for key, value in fields.items() if key not in _ASIDE}
    work = {"order": asked, "argv": list(request.argv), "env": dict(request.env), "cwd": os.path.realpath(cwd),
            "artifacts": list(request.artifacts), "files": _state_of(root, cwd)}  # fmt: skip
    text = json.dumps(work, sort_keys=True).encode("utf-8", "surrogatepass")
    return f"reuse-{hashlib.sha256(text).hexdigest()}"


def _state_of(root: Root, cwd: str) -> str:
    try:
        top = git_in(cwd, limit_s=_LIMIT_S).text("rev-parse", "--show-toplevel")
        return _digest(git_in(top, limit_s=_LIMIT_S), _ours(root, top))
    except (GitError, OSError) as error:
        advised = error.steps if isinstance(error, GitError) else ()
        raise Refused(
            f"reuse cannot tell whether the files in {cwd} are the same: {error}",
            hint=advised
            or ("it needs a git repository with a commit", WithArguments("leave ", Argument("reuse"), " out")),
        ) from error


def _ours(root: Root, top: str) -> str:
    """Return the pathspec that leaves out the root, whose files change with every spawn."""
    path = os.path.relpath(os.path.realpath(root.path), os.path.realpath(top))
    return f":(exclude,top,literal){path}" if not path.startswith(os.pardir) else ":(exclude,top,literal).agentctl"


def _digest(git: Git, ours: str) -> str:
    """Return a hash of the commit, and of each file that differs from it or is new."""
    differs = ("diff", "HEAD", "--no-ext-diff", "--no-textconv", "--no-renames", "--ignore-submodules=dirty")
    changed = git.names(*differs, "--name-only", "-z", "--", ".", ours)
    new = git.names("ls-files", "-z", "--others", "--exclude-standard", "--", ".", ours)
    names = sorted({*changed, *new})
    _refuse_much(git.folder, names)
    found = hashlib.sha256(git.run("rev-parse", "HEAD"))
    folders = [f":(top,literal){name}" for name in changed if os.path.isdir(os.path.join(git.folder, name))]
    if folders:  # The diff has a submodule's commit; of a file that became a folder, it leaves out the old content.
        found.update(git.run(*differs, "--full-index", "--irreversible-delete", "--", *folders))
    for name in names:
        found.update(b"\0" + os.fsencode(name) + b"\0" + _content(os.path.join(git.folder, name)))
    return found.hexdigest()


def _refuse_much(folder: str, names: Sequence[str]) -> None:
    sizes = {name: _size_of(os.path.join(folder, name)) for name in names}
    if sum(sizes.values()) > _MOST_BYTES:
        raise Refused(
            f"reuse reads uncommitted files, and in {folder} these have more than {_MOST_BYTES >> 30} GiB:"
            f" {max(sizes, key=lambda name: sizes[name])} is the largest",
            hint=("commit it, or name it in .gitignore", WithArguments("or leave ", Argument("reuse"), " out")),
        )


def _size_of(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except (FileNotFoundError, NotADirectoryError):  # Removed, and so different.
        return 0


def _content(path: str) -> bytes:
    """Return whether a file is executable, and its hash; of a link its target; for anything else, nothing."""
    if os.path.islink(path):
        return b"link " + os.fsencode(os.readlink(path))
    if not os.path.isfile(path):
        return b""
    with open(open_plain(path), "rb") as file:
        kind = b"program " if os.stat(file.fileno()).st_mode & stat.S_IXUSR else b"file "
        return kind + hashlib.file_digest(file, "sha256").digest()
