"""What a worker changed in its worktree: `changes.patch`, and the files that it touched.

The patch is the difference between the commit that the worktree was made from and what it contains now: commits,
changes and new files that are not ignored. It is made with a separate index and object folder, so that neither the
worktree nor the repository is touched. This runs as a program of its own beside a shim, or within a later command.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Mapping

from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import read_json, storage_errors, sync_folder, to_json, write_whole
from agentctl.adapters.git import Git, GitError, quoted_alternate
from agentctl.adapters.locks import locked
from agentctl.adapters.taskdir import WorkerDir
from agentctl.errors import AgentctlError
from agentctl.lean import Any
from agentctl.supervision.worktree.recorded import RecordedWorktree, tree_from

#: The patch is cut at this size, and larger files are left out of it.
MOST_BYTES = 64 << 20
#: The limit for all files together: a worker may have installed very much that git was not told to ignore.
MOST_TAKEN_BYTES = 4 * MOST_BYTES
MOST_FILES = 10_000
SCRATCH = ".scratch"
_CHANGES = {"A": "added", "M": "modified", "D": "deleted", "T": "modified"}


def record_changes(worker: WorkerDir, *, limit_s: float, environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Make the patch of a worker and record what it is, or why git could not make it; return the record."""
    draft = f"{worker.patch}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    try:
        tree = tree_from(read_json(worker.worktree) or {})
        changes = _look(tree, worker, draft, limit_s, environ) if tree else {"error": "the worktree was never finished"}
    except (AgentctlError, OSError) as error:
        changes = {"error": str(error)}
    try:
        with locked(worker.lock):  # Patch and record belong together, even if another process makes them too.
            record = read_json(worker.worktree) or {}
            changes |= {"at": now_iso()}
            if changes.get("patch"):
                with storage_errors(worker.patch, "write"):
                    os.rename(draft, worker.patch)
                    sync_folder(worker.path)
            write_whole(worker.worktree, to_json({**record, "changes": changes}))
    finally:
        if os.path.exists(draft):
            os.unlink(draft)
    return {**record, "changes": changes}


def _look(
    tree: RecordedWorktree, worker: WorkerDir, draft: str, limit_s: float, environ: Mapping[str, str]
) -> dict[str, Any]:
    git = tree.git(limit_s, environ)
    scratch = tempfile.mkdtemp(prefix=f"changes.{os.getpid()}.", suffix=SCRATCH, dir=worker.path)
    try:
        aside = _with_index_aside(git, tree, scratch)
        left_out = _take_in(aside, tree)
        files = _files(aside, tree.base)
        found: dict[str, Any] = {"files": dict(files[:MOST_FILES]), "fileCount": len(files)}
        if left_out:
            found["leftOut"] = left_out
        found |= {"head": git.text("rev-parse", "HEAD"), "commits": _count(git, f"{tree.base}..HEAD")}
        return found | (_patch(aside, tree.base, draft, str(worker.patch)) if files else {})
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _count(git: Git, commits: str) -> int:
    return int(git.text("rev-list", "--count", commits))


def _with_index_aside(git: Git, tree: RecordedWorktree, scratch: str) -> Git:
    """Return git with a copy of the worktree's index, and with a folder of its own for new objects."""
    index, objects = os.path.join(scratch, "index"), os.path.join(scratch, "objects")
    os.mkdir(objects)
    aside = git.with_environment(
        {
            "GIT_INDEX_FILE": index,
            "GIT_OBJECT_DIRECTORY": objects,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted_alternate(os.path.join(tree.common, "objects")),
        }
    )
    try:
        shutil.copyfile(os.path.join(tree.git_dir, "index"), index)
        aside.run("ls-files", "--stage", "--", ":(exclude)*")  # Reads the index, and prints nothing.
    except (OSError, GitError):  # A missing or damaged index: all files are read again.
        if os.path.exists(index):
            os.unlink(index)
        aside.run("read-tree", tree.base)
    return aside


def _take_in(git: Git, tree: RecordedWorktree) -> list[dict[str, str]]:
    """Add what lies in the worktree to the index; return what cannot be added, and why.

    `git add` would do, but it runs `git status` within submodules, whose settings an agent can change.
    """
    names = git.names("ls-files", "-z", "--modified", "--deleted", "--others", "--exclude-standard")
    taken, left_out, room = [], [], MOST_TAKEN_BYTES
    for name in sorted(set(names), key=os.fsencode):  # A file that became a folder comes before the folder's content.
        why, size = _look_at(os.path.join(tree.path, name))
        if why is None and size > room:
            why = f"{size} bytes: all files together exceed {MOST_TAKEN_BYTES}"
        if why is None:
            taken.append(name)
            room -= size
        else:
            left_out.append({"path": name, "why": why})
    listed = b"".join(os.fsencode(name) + b"\0" for name in taken)
    git.run("update-index", "-z", "--add", "--remove", "--replace", "--stdin", stdin=listed)
    return left_out[:MOST_FILES]


def _look_at(path: str) -> tuple[str | None, int]:
    """Return why a file cannot be in a patch, and its size; None if it can, or is gone, which a patch can say."""
    if path.endswith("/"):
        return "a repository of its own", 0
    try:
        found = os.lstat(path)
    except OSError:
        return None, 0
    if stat.S_ISDIR(found.st_mode) or stat.S_ISLNK(found.st_mode):
        return None, 0
    if not stat.S_ISREG(found.st_mode):
        return "not a regular file", 0
    if found.st_size > MOST_BYTES:
        return f"{found.st_size} bytes: too large", 0
    return None if os.access(path, os.R_OK) else "it cannot be read", found.st_size


_PLAIN = ("--cached", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none")


def _files(git: Git, base: str) -> list[tuple[str, str]]:
    """Return (path, change) of each file that differs from the base."""
    fields = git.names("diff-index", *_PLAIN, "-z", "--name-status", base, "--")
    letters, names = fields[::2], fields[1::2]
    return sorted((name, _CHANGES.get(letter[:1], letter)) for letter, name in zip(letters, names, strict=True))


def _patch(git: Git, base: str, draft: str, path: str) -> dict[str, Any]:
    """Write the patch to `draft` as `git apply` takes it, whatever the user has set for reading diffs."""
    args = ("diff-index", *_PLAIN, "-p", "--binary", "--full-index", "--no-color", "--src-prefix=a/", "--dst-prefix=b/")
    with open(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "rb+") as file:
        try:
            git.run(*args, base, "--", into=file, most_bytes=MOST_BYTES)
        except GitError:
            if os.fstat(file.fileno()).st_size < MOST_BYTES:
                raise
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = os.fstat(file.fileno()).st_size
        os.fsync(file.fileno())
    return {"patch": path, "size": size, "sha256": digest} | ({"cut": True} if size >= MOST_BYTES else {})
