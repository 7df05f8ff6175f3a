"""What a worktree holds that exists nowhere else: files and commits, also within its submodules."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping

from agentctl.adapters.git import Git, GitError
from agentctl.adapters.taskdir import WorkerDir
from agentctl.lean import TYPE_CHECKING, Any, NamedTuple
from agentctl.supervision.worktree.aside import CHANGED_FILES
from agentctl.supervision.worktree.recorded import RecordedWorktree, git_from, tree_from
from agentctl.supervision.worktree.submodules import InnerWork, inner_work

if TYPE_CHECKING:
    from agentctl.domain.documents.worktrees import SubmoduleState, WorktreeState

LOOK_LIMIT_S = 60.0


class Holding(NamedTuple):
    """What exists nowhere else, when it was looked at."""

    #: Files that differ from the last commit, including new ones.
    uncommitted: int
    #: Commits that are on no other branch, tag or remote; and what has to be merged for them: its branch, a commit.
    unmerged: int
    tips: tuple[str, ...]
    #: The same of each repository within the worktree.
    submodules: tuple[tuple[str, int, int], ...]

    @property
    def all_uncommitted(self) -> int:
        """Return how many files, with those in submodules."""
        return self.uncommitted + sum(files for _, files, _ in self.submodules)

    @property
    def all_unmerged(self) -> int:
        """Return how many commits, with those in submodules."""
        return self.unmerged + sum(commits for _, _, commits in self.submodules)


@contextlib.contextmanager
def holding(worker: WorkerDir, record: Mapping[str, Any]) -> Iterator[tuple[Holding, list[InnerWork]]]:
    """Give what a worktree holds, whose folder may be gone, and the repositories within it.

    Raises:
        GitError: git cannot tell.
    """
    tree = tree_from(record)
    if tree is None:  # It was never finished.
        yield Holding(0, *_unmerged(git_from(record, LOOK_LIMIT_S), None, record), ()), []
        return
    is_there = os.path.isdir(tree.path)
    git = tree.git(LOOK_LIMIT_S) if is_there else tree.git_of_repository(LOOK_LIMIT_S)
    uncommitted = len(git.names("status", *CHANGED_FILES)) if is_there else 0
    with inner_work(git, tree, worker) as inner:
        within = ((one.repository.path, one.changed, one.commits) for one in inner)
        yield Holding(uncommitted, *_unmerged(git, tree, record), tuple(within)), inner


def state_now(worker: WorkerDir, record: Mapping[str, Any]) -> WorktreeState:
    """Return what a worktree holds as of now; that this is unknown if git fails."""
    if record.get("removed"):
        return {"state": "removed", "uncommitted": 0, "unmerged": 0, "submodules": []}
    try:
        with holding(worker, record) as (found, _):
            pass
    except GitError as error:
        return {
            "state": "unknown", "uncommitted": None, "unmerged": None, "submodules": [], "problem": error.message,
        }  # fmt: skip
    within: list[SubmoduleState] = [
        {"path": path, "uncommitted": files, "unmerged": commits}
        for path, files, commits in found.submodules
        if files or commits
    ]
    return {
        "state": _state(worker, record, found), "uncommitted": found.all_uncommitted, "unmerged": found.all_unmerged,
        "submodules": within,
    }  # fmt: skip


def _state(worker: WorkerDir, record: Mapping[str, Any], found: Holding) -> str:
    if not os.path.isdir(str(record["path"])):
        return "gone"
    if not worker.has_ended:
        return "in-use"
    return "uncommitted" if found.all_uncommitted else "unmerged" if found.all_unmerged else "clean"


def _unmerged(git: Git, tree: RecordedWorktree | None, record: Mapping[str, Any]) -> tuple[int, tuple[str, ...]]:
    """Return how many commits of the worktree are on no other branch, tag or remote, and what leads to them."""
    branch = record["branch"]
    named = git.names("for-each-ref", "--format=%(objectname)%00", f"refs/heads/{branch}")
    tips = {commit.strip(): branch for commit in named if commit.strip()}
    if tree is not None and tree.has_git_dir:  # The worker may have left its branch.
        head = tree.at_its_head(git).text("rev-parse", "HEAD")
        tips.setdefault(head, head)
    others = ("--not", record["base"], f"--exclude={branch}", "--branches", "--remotes", "--tags")
    count = int(git.text("rev-list", "--count", *tips, *others)) if tips else 0
    last = git.text("merge-base", "--independent", *tips).split() if count and len(tips) > 1 else tips
    return count, tuple(
        tips[tip] for tip in last if int(git.text("rev-list", "--count", tip, *others))
    ) if count else ()
