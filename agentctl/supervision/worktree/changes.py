"""What a worker changed in its worktree: `changes.patch`, and the files that it touched.

The patch is the difference between the commit that the worktree was made from and what it contains now: commits,
changes and new files that are not ignored. It is made with a separate index and object folder, so that neither the
worktree nor the repository is touched. Of a worktree that is gone, it has the commits. This runs as a program of its
own beside a shim, or within a later command.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping

from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import storage_errors, sync_folder
from agentctl.adapters.git import Git, GitError
from agentctl.adapters.locks import locked
from agentctl.adapters.taskdir import WorkerDir
from agentctl.errors import AgentctlError
from agentctl.lean import Any
from agentctl.supervision.worktree.aside import (
    MOST_FILES,
    files_of,
    git_aside,
    git_with_index,
    scratch_folder,
    take_in,
    write_patch,
)
from agentctl.supervision.worktree.record import read_record, write_record
from agentctl.supervision.worktree.recorded import RecordedWorktree, tree_from
from agentctl.supervision.worktree.submodules import record_inner


def record_changes(worker: WorkerDir, *, limit_s: float, environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Make the patch of a worker and record what it is, or why git could not make it; return the record."""
    draft = f"{worker.patch}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    try:
        tree = tree_from(read_record(worker) or {})
        changes = _look(tree, worker, draft, limit_s, environ) if tree else {"error": "the worktree was never finished"}
    except (AgentctlError, OSError) as error:
        changes = {"error": str(error)}
    try:
        with locked(worker.lock):  # Patch and record belong together, even if another process makes them too.
            record = read_record(worker) or {}
            changes |= {"at": now_iso()}
            if changes.get("patch"):
                with storage_errors(worker.patch, "write"):
                    os.rename(draft, worker.patch)
                    sync_folder(worker.path)
            write_record(worker, {**record, "changes": changes})
            _remove_unnamed(worker, changes)
    finally:
        if os.path.exists(draft):
            os.unlink(draft)
    return {**record, "changes": changes}


def _look(
    tree: RecordedWorktree, worker: WorkerDir, draft: str, limit_s: float, environ: Mapping[str, str]
) -> dict[str, Any]:
    if not os.path.isdir(tree.path):
        return _look_at_commits(tree, worker, draft, limit_s, environ)
    git = tree.git(limit_s, environ)
    with scratch_folder(worker) as scratch:
        aside = git_aside(git, tree, scratch)
        left_out = take_in(aside, tree.path)
        found = _compared(aside, tree, worker, draft, git.text("rev-parse", "HEAD"))
    if left_out:
        found["leftOut"] = left_out[:MOST_FILES]
    return found | _submodules(git, tree, worker)


def _look_at_commits(
    tree: RecordedWorktree, worker: WorkerDir, draft: str, limit_s: float, environ: Mapping[str, str]
) -> dict[str, Any]:
    """Find out what was committed in a worktree that is gone: all that is left of it."""
    git = tree.git_of_repository(limit_s, environ)
    head = tree.last_commit(git)
    if head is None:
        return {"error": f"{tree.path} is gone, and so is its branch {tree.branch}", "lost": True}
    with scratch_folder(worker) as scratch:
        aside = git_with_index(git, scratch, head)
        found = _compared(aside, tree, worker, draft, head)
    return found | {"onlyCommits": True} | _submodules(git, tree, worker)


def _compared(aside: Git, tree: RecordedWorktree, worker: WorkerDir, draft: str, head: str) -> dict[str, Any]:
    files = files_of(aside, tree.base)
    return {
        "files": dict(files[:MOST_FILES]), "fileCount": len(files), "head": head,
        "commits": int(aside.text("rev-list", "--count", f"{tree.base}..{head}")),
        **(write_patch(aside, tree.base, draft, str(worker.patch)) if files else {}),
    }  # fmt: skip


def _submodules(git: Git, tree: RecordedWorktree, worker: WorkerDir) -> dict[str, Any]:
    """Keep what is only in submodules; that this fails does not cost the patch."""
    try:
        kept = record_inner(git, tree, worker)
    except GitError as error:
        return {"submodulesError": error.message}
    return {"submodules": kept} if kept else {}


def _remove_unnamed(worker: WorkerDir, changes: Mapping[str, Any]) -> None:
    """Remove what an earlier look at the submodules has kept."""
    named = {file["path"] for one in changes.get("submodules", ()) for file in one["kept"]}
    with contextlib.suppress(OSError):
        for name in os.listdir(worker.submodules):
            if os.path.join(worker.submodules.name, name) not in named:
                os.unlink(worker.submodules / name)
