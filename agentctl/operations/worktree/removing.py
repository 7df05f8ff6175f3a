"""When a worktree may be removed, and how: nothing is lost by it, and nothing is merged.

Behind the refusals of this module are those of git itself, with one exception: git removes no worktree in which a
submodule was initialised, unless it is told not to look at all. There this module looks twice.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence

from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import read_known
from agentctl.adapters.git import GitError
from agentctl.adapters.locks import locked
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.errors import Next, Refused
from agentctl.lean import TYPE_CHECKING, Any
from agentctl.operations.where.locating import find_worker
from agentctl.operations.where.ownership import check_own
from agentctl.operations.worktree.changes import ensure_recorded, worktree_record
from agentctl.operations.worktree.making import is_within
from agentctl.operations.worktree.standing import LOOK_LIMIT_S, Holding, holding
from agentctl.supervision.worktree.record import write_record
from agentctl.supervision.worktree.recorded import git_from, tree_from
from agentctl.supervision.worktree.submodules import InnerWork, give_commits, keep_work

if TYPE_CHECKING:
    from agentctl.domain.documents.worktrees import KeptSubmodule, RemovedWorktree

_LOCKED = "locked working tree"


def remove_worktree(task: TaskDir, instance: str) -> RemovedWorktree:
    """Remove a worktree in which nothing would be lost, and its branch if git calls it merged.

    Commits in submodules are kept first: in the repository's own submodule, or else in a file. One that was removed
    already is told as it was: who has lost the answer cannot know that.

    Raises:
        Refused: A worker works in it, or it holds work that is nowhere else; nothing was changed.
    """
    worker, record = _recorded(task, instance)
    if record.get("removed"):
        return _removed(instance, record)
    _refuse_before_look(task, worker, record)
    try:
        with holding(worker, record) as (found, inner):
            _refuse_loss(worker, record, found)
            kept = [_keep(one, worker) for one in inner if one.commits]
        if inner:
            _refuse_change(worker, record, found, inner)
    except GitError as error:
        raise _untold(record, error) from error
    _remove(worker, record, has_repositories=bool(inner))
    is_deleted = _delete_branch(record)
    with locked(worker.lock):
        record = worktree_record(worker)
        if not record.get("removed"):  # Else somebody else has removed it meanwhile, and knows what became of it.
            record |= {"removed": {"at": now_iso(), "branchDeleted": is_deleted, "submodules": kept}}
            write_record(worker, record)
    return _removed(instance, record)


def _removed(instance: str, record: Mapping[str, Any]) -> RemovedWorktree:
    done = record["removed"]
    return {"agentInstance": instance, "removed": True, "path": record["path"], "branch": record["branch"],
            "branchDeleted": bool(done.get("branchDeleted")), "submodules": done.get("submodules") or []}  # fmt: skip


def check_removable(task: TaskDir, instance: str) -> None:
    """Raise what `remove_worktree` would refuse with; nothing is removed."""
    worker, record = _recorded(task, instance)
    if record.get("removed"):
        raise Refused(f"the worktree of {instance} was removed already")
    _refuse_before_look(task, worker, record)
    try:
        with holding(worker, record) as (found, _):
            _refuse_loss(worker, record, found)
    except GitError as error:
        raise _untold(record, error) from error


def _recorded(task: TaskDir, instance: str) -> tuple[WorkerDir, dict[str, Any]]:
    """Return a worker that has or had a worktree, and the record of that."""
    check_own(task)
    worker = find_worker(task, instance)
    return worker, worktree_record(worker)


def _refuse_before_look(task: TaskDir, worker: WorkerDir, record: Mapping[str, Any]) -> None:
    """Refuse a worktree in which somebody works, and record the changes in any other."""
    _refuse_in_use(task, worker, str(record["path"]))
    ensure_recorded(worker, again=True)


def _untold(record: Mapping[str, Any], error: GitError) -> Refused:
    return Refused(
        f"git cannot say what is in {record['path']}: {error.message}",
        hint=error.steps or f"look into {record['path']}: agentctl removes nothing that git cannot account for",
    )


def _refuse_in_use(task: TaskDir, worker: WorkerDir, path: str) -> None:
    if not worker.has_ended:
        raise Refused(f"{worker.instance} has not ended", hint=Next("cancel", worker.instance))
    for instance in task.instances():
        other = task.worker(instance)
        cwd = str(read_known(other.spec).get("cwd") or "") if not other.has_ended else ""
        if cwd and is_within(cwd, path):
            raise Refused(f"{instance} works in the worktree of {worker.instance}", hint=Next("cancel", instance))


def _refuse_loss(worker: WorkerDir, record: Mapping[str, Any], found: Holding) -> None:
    path, in_repository = record["path"], f"git -C {shlex.quote(record['repository'])}"
    # git would not look into a submodule then.
    is_whole = not any(files or commits for _, files, commits in found.submodules)
    throw_away = f"{in_repository} worktree remove --force {shlex.quote(path)}" if is_whole and _is_left(record) else ""
    if found.all_uncommitted:
        inside = [f"{files} of them in its submodule {where}" for where, files, _ in found.submodules if files]
        patch = worker.submodules if inside else worker.patch
        raise Refused(
            f"the worktree of {worker.instance} holds uncommitted work:"
            f" {_counted(found.all_uncommitted, 'file')} in {path}" + "".join(f", {one}" for one in inside),
            hint=f"commit them there, or apply {patch} where you want them"
            + (throw_away and f"; then, or to throw it away: {throw_away}"),
        )
    if found.unmerged:
        merge = " && ".join(f"{in_repository} merge {tip}" for tip in found.tips)
        delete = f"{in_repository} branch -D {record['branch']}" if record["branch"] in found.tips else ""
        steps = " && ".join(filter(None, (throw_away, delete))) if is_whole else ""
        raise Refused(
            f"the worktree of {worker.instance} holds unmerged work:"
            f" {_counted(found.unmerged, 'commit')} that no other branch has",
            hint=merge + (steps and f"; or to throw it away: {steps}"),
        )


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _is_left(record: Mapping[str, Any]) -> bool:
    """Return whether something is left of a worktree besides its branch."""
    tree = tree_from(record)
    return os.path.isdir(record["path"]) or (tree is not None and tree.has_git_dir)


def _refuse_change(
    worker: WorkerDir, record: Mapping[str, Any], found: Holding, inner: Sequence[InnerWork]
) -> None:  # fmt: skip
    """Refuse what was changed since the first look: what git is told next is not to look."""
    with holding(worker, record) as (later, again):
        if later[:3] != found[:3] or [*map(_seen, inner)] != [*map(_seen, again)]:
            raise Refused(
                f"the worktree of {worker.instance} was changed while it was looked at",
                hint=Next("remove worktree", worker.instance),
            )


def _seen(work: InnerWork) -> tuple[object, ...]:
    return work.repository.path, sorted(work.refs.values()), work.changed


def _keep(work: InnerWork, worker: WorkerDir) -> KeptSubmodule:
    """Keep the commits of a submodule where a person has them; return where."""
    kept: KeptSubmodule = {"path": work.repository.path, "commits": work.commits}
    try:
        kept["repository"], kept["refs"] = give_commits(work, worker)
    except GitError:
        (bundle,) = (file for file in keep_work(work, worker)["kept"] if file["path"].endswith(".bundle"))
        kept["bundle"] = str(worker.path / bundle["path"])
    return kept


def _remove(worker: WorkerDir, record: Mapping[str, Any], *, has_repositories: bool) -> None:
    if not _is_left(record):
        return
    git_dir = str(record.get("gitDir") or "")
    is_seen = has_repositories or (git_dir and os.path.isdir(os.path.join(git_dir, "modules")))
    try:
        git = git_from(record, LOOK_LIMIT_S)
        git.patiently("worktree", "remove", *(["--force"] if is_seen else []), record["path"])
    except GitError as error:
        path, repository = shlex.quote(record["path"]), shlex.quote(record["repository"])
        unlock = f"git -C {repository} worktree unlock {path}, then try again" if _LOCKED in error.message else None
        raise Refused(
            f"git refuses to remove the worktree of {worker.instance}: {error.message}",
            hint=error.steps or unlock or Next("look at worktree", worker.instance),
        ) from error


def _delete_branch(record: Mapping[str, Any]) -> bool:
    """Delete the branch as far as git itself calls it merged."""
    try:
        git_from(record, LOOK_LIMIT_S).patiently("branch", "-d", record["branch"])
    except GitError:
        return False
    return True
