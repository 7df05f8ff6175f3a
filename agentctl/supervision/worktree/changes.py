"""What a worker changed in its worktree: `changes.patch`, and the files that it touched.

The patch is the difference between the commit that the worktree was made from and what it contains now: commits,
changes and new files that are not ignored. It is made with a separate index and object folder, so that neither the
worktree nor the repository is touched. This runs as a program of its own beside a shim, or within a later command.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping

from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import read_json, storage_errors, sync_folder, to_json, write_whole
from agentctl.adapters.git import Git, GitError
from agentctl.adapters.locks import locked
from agentctl.adapters.taskdir import WorkerDir
from agentctl.errors import AgentctlError
from agentctl.lean import Any
from agentctl.supervision.worktree.aside import (
    AS_PATCH,
    DIFF,
    MOST_BYTES,
    MOST_FILES,
    git_aside,
    scratch_folder,
    take_in,
)  # fmt: skip
from agentctl.supervision.worktree.recorded import RecordedWorktree, tree_from

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
    with scratch_folder(worker) as scratch:
        aside = git_aside(git, tree, scratch)
        left_out = take_in(aside, tree)
        files = _files(aside, tree.base)
        found: dict[str, Any] = {"files": dict(files[:MOST_FILES]), "fileCount": len(files)}
        if left_out:
            found["leftOut"] = left_out[:MOST_FILES]
        found |= {"head": git.text("rev-parse", "HEAD"), "commits": _count(git, f"{tree.base}..HEAD")}
        return found | (_patch(aside, tree.base, draft, str(worker.patch)) if files else {})


def _count(git: Git, commits: str) -> int:
    return int(git.text("rev-list", "--count", commits))


def _files(git: Git, base: str) -> list[tuple[str, str]]:
    """Return (path, change) of each file that differs from the base."""
    fields = git.names(*DIFF, "-z", "--name-status", base, "--")
    letters, names = fields[::2], fields[1::2]
    return sorted((name, _CHANGES.get(letter[:1], letter)) for letter, name in zip(letters, names, strict=True))


def _patch(git: Git, base: str, draft: str, path: str) -> dict[str, Any]:
    """Write the patch to `draft` as `git apply` takes it, whatever the user has set for reading diffs."""
    with open(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "rb+") as file:
        try:
            git.run(*AS_PATCH, base, "--", into=file, most_bytes=MOST_BYTES)
        except GitError:
            if os.fstat(file.fileno()).st_size < MOST_BYTES:
                raise
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = os.fstat(file.fileno()).st_size
        os.fsync(file.fileno())
    return {"patch": path, "size": size, "sha256": digest} | ({"cut": True} if size >= MOST_BYTES else {})
