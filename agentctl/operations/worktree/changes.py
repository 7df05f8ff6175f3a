"""The worktrees of workers: what was changed in them, what of it exists elsewhere too, and how they are removed.

Nothing is merged here. A worktree is removed only if nothing is lost by it: behind the refusals of this module are
those of git itself.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import read_json, read_quietly, to_json, write_whole
from agentctl.adapters.git import GitError
from agentctl.adapters.locks import locked
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.errors import Damaged, NotFound, Refused
from agentctl.operations.where.locating import find_worker
from agentctl.operations.where.ownership import check_own
from agentctl.operations.worktree.making import is_within
from agentctl.supervision.worktree.recorded import git_from, tree_from

_LOOK_LIMIT_S = 60.0
_RECORD_LIMIT_S = 600.0
Record = dict[str, Any]


def known_worktree(worker: WorkerDir) -> Record | None:
    """Return what is known of a worker's worktree without asking git; None if it has none."""
    record = read_quietly(worker.worktree)
    if not record:
        return None
    shown = {key: record.get(key) for key in ("path", "branch", "repository", "base", "removed", "changes")}
    more = {"next": f"agentctl worktrees show {worker.instance}"} if _lacks_changes(worker, record) else {}
    return {**shown, "overlaps": overlaps(worker, record), **more}


def overlaps(worker: WorkerDir, record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the files that other ended workers of the task changed too: [{instance, files}].

    Computed at each call: a stored result of the first of two workers would have to change when the second ends.
    """
    mine = _touched(record)
    found = []
    for instance in worker.task.instances() if mine else ():
        other = read_quietly(worker.task.worker(instance).worktree) if instance != worker.instance else {}
        is_rival = other.get("commonDir") == record.get("commonDir") and other.get("path") != record.get("path")
        both = mine & _touched(other) if is_rival else set()
        if both:
            found.append({"instance": instance, "files": sorted(both)})
    return found


def _touched(record: Mapping[str, Any]) -> set[str]:
    files = changes_of(record).get("files")
    return set(files) if isinstance(files, dict) else set()


def changes_of(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the changes in the record of a worktree; {} if it has none."""
    found = record.get("changes")
    return found if isinstance(found, dict) else {}


def patch_of(record: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Return the patch as a list of files for a result: [{path, size, sha256}], or []."""
    changes = changes_of(record or {})
    if not {"patch", "size", "sha256"} <= changes.keys():
        return []
    return [{"path": changes["patch"], "size": changes["size"], "sha256": changes["sha256"]}]


def ensure_recorded(worker: WorkerDir, *, again: bool = False) -> None:
    """Record the changes of an ended worker if its shim could not.

    Args:
        again: Also if an earlier try failed.
    """
    record = read_quietly(worker.worktree)
    if _lacks_changes(worker, record) and (again or not record.get("changes")):
        from agentctl.supervision.worktree.changes import record_changes

        record_changes(worker, limit_s=_RECORD_LIMIT_S)


def _lacks_changes(worker: WorkerDir, record: Mapping[str, Any]) -> bool:
    """Return whether the changes of an ended worker are not recorded, but still can be."""
    known = record.get("changes")
    return (
        bool(record) and worker.has_ended and not record.get("removed") and (not known or "error" in changes_of(record))
    )


def list_worktrees(task: TaskDir) -> list[Record]:
    """Return a row for each worktree of a task."""
    check_own(task)
    found = (task.worker(instance) for instance in task.instances())
    return [_row(worker) for worker in found if worker.worktree.exists()]


def show_worktree(task: TaskDir, instance: str) -> Record:
    """Return everything that is known of one worktree."""
    check_own(task)
    worker = find_worker(task, instance)
    _record_of(worker)
    ensure_recorded(worker, again=True)
    return {**_row(worker), **(known_worktree(worker) or {})}


def _record_of(worker: WorkerDir) -> Record:
    record = read_json(worker.worktree)
    if record is None:
        raise NotFound(f"{worker.instance} has no worktree", hint="agentctl spawn --worktree makes one")
    if not all(isinstance(record.get(key), str) for key in ("path", "branch", "repository")):
        raise Damaged(f"{worker.worktree} does not say where the worktree is", hint="agentctl doctor looks at it")
    return record


def _row(worker: WorkerDir) -> Record:
    ensure_recorded(worker)
    record = read_quietly(worker.worktree)
    changes = changes_of(record)
    known = known_worktree(worker) or {}
    return {
        "agentInstance": worker.instance,
        "path": record.get("path"),
        "branch": record.get("branch"),
        "base": record.get("base"),
        "files": changes.get("fileCount"),
        **_state_now(worker, record),
        "overlaps": known.get("overlaps") or [],
    }


def _state_now(worker: WorkerDir, record: Mapping[str, Any]) -> Record:
    """Return {state, uncommitted, unmerged} as of now, or {state: unknown, problem} if git fails."""
    if record.get("removed"):
        return {"state": "removed", "uncommitted": 0, "unmerged": 0}
    try:
        uncommitted, unmerged = _uncommitted(record), _unmerged(record)
    except GitError as error:
        return {"state": "unknown", "uncommitted": None, "unmerged": None, "problem": error.message}
    if not os.path.isdir(str(record["path"])):
        state = "gone"
    elif not worker.has_ended:
        state = "in-use"
    else:
        state = "uncommitted" if uncommitted else "unmerged" if unmerged else "clean"
    return {"state": state, "uncommitted": uncommitted, "unmerged": unmerged}


def _uncommitted(record: Mapping[str, Any]) -> int:
    """Return how many files differ from the last commit, including new ones; 0 if the folder is gone."""
    tree = tree_from(record)
    if tree is None or not os.path.isdir(tree.path):
        return 0
    git = tree.git(_LOOK_LIMIT_S)
    # Not within submodules: an agent can change their settings.
    args = ("--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=dirty")
    return len(git.names("status", *args))


def _unmerged(record: Mapping[str, Any]) -> int:
    """Return how many commits of the worktree are on no other branch, tag or remote."""
    git, branch, tree = git_from(record, _LOOK_LIMIT_S), str(record["branch"]), tree_from(record)
    mine = git.names("for-each-ref", "--format=%(objectname)%00", f"refs/heads/{branch}")
    heads = [name.strip() for name in mine if name.strip()]
    if tree is not None and os.path.isdir(tree.git_dir):  # The worker may have left its branch.
        heads.append(tree.at_its_head(git).text("rev-parse", "HEAD"))
    if not heads:
        return 0
    others = ("--not", record["base"], f"--exclude={branch}", "--branches", "--remotes", "--tags")
    return int(git.text("rev-list", "--count", *heads, *others))


# -- the end of a worktree ---------------------------------------------------------------------------------------------


def remove_worktree(task: TaskDir, instance: str) -> Record:
    """Remove a worktree in which nothing would be lost, and its branch if git calls it merged.

    Raises:
        Refused: A worker works in it, or it holds work that is nowhere else; nothing was changed.
    """
    check_own(task)
    worker = find_worker(task, instance)
    record = _record_of(worker)
    if record.get("removed"):
        raise Refused(f"the worktree of {instance} was removed already")
    _refuse_in_use(task, worker, str(record["path"]))
    ensure_recorded(worker, again=True)
    _refuse_loss(worker, record)
    try:
        git_from(record, _LOOK_LIMIT_S).patiently("worktree", "remove", record["path"])
    except GitError as error:
        raise Refused(
            f"git refuses to remove the worktree of {instance}: {error.message}",
            hint=f"look at it; by hand: git -C {record['repository']} worktree remove --force {record['path']}",
        ) from error
    is_deleted = _delete_branch(record)
    with locked(worker.lock):
        removed = {"at": now_iso(), "branchDeleted": is_deleted}
        write_whole(worker.worktree, to_json({**_record_of(worker), "removed": removed}))
    return {"agentInstance": instance, "removed": True, "path": record["path"], "branch": record["branch"],
            "branchDeleted": is_deleted}  # fmt: skip


def _refuse_in_use(task: TaskDir, worker: WorkerDir, path: str) -> None:
    if not worker.has_ended:
        raise Refused(f"{worker.instance} has not ended", hint=f"agentctl cancel {worker.instance}")
    for instance in task.instances():
        other = task.worker(instance)
        cwd = str(read_quietly(other.spec).get("cwd") or "") if not other.has_ended else ""
        if cwd and is_within(cwd, path):
            raise Refused(f"{instance} works in the worktree of {worker.instance}", hint=f"agentctl cancel {instance}")


def _refuse_loss(worker: WorkerDir, record: Mapping[str, Any]) -> None:
    path, branch, repository = record["path"], record["branch"], record["repository"]
    by_hand = f"to throw it away: git -C {repository} worktree remove --force {path}"
    try:
        uncommitted, unmerged = _uncommitted(record), _unmerged(record)
    except GitError as error:
        raise Refused(f"git cannot say what is in {path}: {error.message}", hint=by_hand) from error
    if uncommitted:
        raise Refused(
            f"the worktree of {worker.instance} holds uncommitted work: {uncommitted} files in {path}",
            hint=f"commit them there, or apply {worker.patch} where you want them; {by_hand}",
        )
    if unmerged:
        raise Refused(
            f"the worktree of {worker.instance} holds unmerged work: {unmerged} commits that no other branch has",
            hint=f"git -C {repository} merge {branch}; {by_hand}, then git -C {repository} branch -D {branch}",
        )


def _delete_branch(record: Mapping[str, Any]) -> bool:
    """Delete the branch as far as git itself calls it merged."""
    try:
        git_from(record, _LOOK_LIMIT_S).patiently("branch", "-d", record["branch"])
    except GitError:
        return False
    return True
