"""How the work of an ended worker gets its place once more: where it began, or a worktree that is gone made again.

Git may have more of such a worktree than its branch: its own folder for it, with the commit and the index that were
checked out there. Then these are what is put back.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from typing import Any

from agentctl.adapters.files import make_folder, storage_errors, write_whole
from agentctl.adapters.git import Git, GitError, git_in, git_of_worktree
from agentctl.adapters.locks import locked
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import WorkerDir
from agentctl.errors import Refused
from agentctl.operations.worktree.making import is_made_for, is_within
from agentctl.supervision.worktree.record import known_record, write_record
from agentctl.supervision.worktree.recorded import RecordedWorktree, tree_from

#: A checkout may fetch large files.
_LIMIT_S = 600.0
#: What git says of a branch that is checked out in another worktree; the second wording is that of git 2.43.
_TAKEN = re.compile(r"(?:checked out|used by worktree) at '(.+)'")


def where_begun(worker: WorkerDir, cwd: str) -> tuple[str, bool]:
    """Return the folder in which the work of a worker begins once more, and whether it gets a worktree made from there.

    Args:
        cwd: Where it ran; its worktree may be gone.

    Raises:
        Refused: Where its worktree was made from is not known.
    """
    if not worker.worktree.exists():
        return cwd, False
    record = known_record(worker)
    top, repository = record.get("path"), record.get("repository")
    if not isinstance(top, str) or not isinstance(repository, str) or not _lies_within(cwd, top):
        raise Refused(f"{worker.worktree} does not say where the worktree was made from", hint="spawn it again")
    below = os.path.relpath(os.path.realpath(cwd), os.path.realpath(top))
    return os.path.normpath(os.path.join(repository, below)), True


def _lies_within(cwd: str, top: str) -> bool:
    try:
        return is_within(cwd, top)
    except ValueError:  # A NUL or half a character, which a worker has written there.
        return False


def make_again(worker: WorkerDir) -> None:
    """Make a worker's worktree again, where it was, if it is gone.

    Raises:
        GitError: git has nothing of it any more, or refuses.
    """
    record = known_record(worker)
    tree = tree_from(record)
    if tree is None:
        raise GitError("it was never finished")
    if not is_made_for(worker, tree.path):
        raise GitError(f"{tree.path} is not where worktrees of this task are")
    if os.path.isdir(tree.path):
        return
    git = tree.git_of_repository(_LIMIT_S)
    above = FilePath(tree.path).parent
    if os.path.islink(above.parent):
        raise GitError(f"{above.parent} is a link: worktrees are not made through a link")
    for folder in (above.parent, above):
        make_folder(folder)
    git_dir = _put_back(tree) if tree.has_git_dir else _add(git, tree)
    _note(worker, record, git_dir)


def _put_back(tree: RecordedWorktree) -> str:
    """Put back what git's own folder for the worktree has; killed meanwhile, it leaves a folder beside, and no half."""
    draft = f"{tree.path}.{os.urandom(4).hex()}.tmp"
    with storage_errors(draft, "make the folder"):
        os.mkdir(draft)
    try:
        git = git_of_worktree(draft, tree.git_dir, tree.common, limit_s=_LIMIT_S)
        git.run("checkout-index", "--all", "--force", "--index")
        write_whole(f"{draft}/.git", f"gitdir: {tree.git_dir}\n".encode("utf-8", "surrogateescape"))
        with storage_errors(tree.path, "put in place"):
            os.rename(draft, tree.path)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return tree.git_dir


def _add(git: Git, tree: RecordedWorktree) -> str:
    """Add a worktree of the branch that is left."""
    if tree.last_commit(git) is None:
        raise GitError(f"its branch {tree.branch} is gone, too")
    try:
        git.patiently("worktree", "add", tree.path, tree.branch)
    except GitError as error:
        taken = _TAKEN.search(error.message)
        if taken is None:
            raise
        away = f"git -C {shlex.quote(taken[1])} switch --detach, then try again"
        raise GitError(error.message, hint=away) from error
    return git_in(tree.path, limit_s=_LIMIT_S).text("rev-parse", "--absolute-git-dir")


def _note(worker: WorkerDir, record: dict[str, Any], git_dir: str) -> None:
    """Note that the worktree is there again, also for other runs of an agent that worked in it."""
    for other in map(worker.task.worker, worker.task.instances()):
        with locked(other.lock):
            found = known_record(other)
            if other.instance != worker.instance and (found.get("path") != record["path"] or found.get("removed")):
                continue
            kept = {key: value for key, value in found.items() if key != "removed"}
            write_record(other, {**kept, "gitDir": git_dir})
