"""Whether git may be run with the folders that a `worktree.json` names: only if git itself would find them.

A cloned repository can ship that file, and an ordinary folder that looks like one of git's, with settings that run a
program. It cannot ship anything called `.git`. So the repository must be the one that git finds by a `.git` entry, and
the worktree's own folder there must be one that this repository keeps, and must lead back to the worktree.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping

from agentctl.adapters.files import storage_errors
from agentctl.adapters.git import Git, GitError, git_in, git_of, git_of_worktree
from agentctl.adapters.opening import read_bytes
from agentctl.errors import Damaged
from agentctl.lean import Any, NamedTuple

_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_BRANCH = re.compile(r"agentctl/[\w-]+/[\w-]+", re.ASCII)
_LONGEST_PATH = 8192


class RecordedWorktree(NamedTuple):
    """A worktree as `worktree.json` describes it."""

    path: str
    git_dir: str
    common: str
    base: str
    branch: str
    #: Where it was made from.
    repository: str

    def git(self, limit_s: float, environ: Mapping[str, str] = os.environ) -> Git:
        """Return git for it.

        Raises:
            GitError: The worktree is gone, or is not what its record says.
        """
        for folder in (self.path, self.git_dir):
            if not os.path.isdir(folder):
                raise GitError(f"the worktree is gone: there is no {folder}")
        _check_common(self.common, (self.repository, self.path), limit_s, environ)
        self._check_git_dir()
        return git_of_worktree(self.path, self.git_dir, self.common, limit_s=limit_s, environ=environ)

    def git_of_repository(self, limit_s: float, environ: Mapping[str, str] = os.environ) -> Git:
        """Return git for the repository that it was made from.

        Raises:
            GitError: The repository is not the one that the worktree was made from, or is gone.
        """
        _check_common(self.common, (self.repository, self.path), limit_s, environ)
        return git_of(self.common, limit_s=limit_s, environ=environ)

    def last_commit(self, git: Git) -> str | None:
        """Return what was checked out in it last, even if its files are gone; None if nothing tells."""
        if self.has_git_dir:
            return self.at_its_head(git).text("rev-parse", "HEAD")
        found = git.names("for-each-ref", "--format=%(objectname)%00", f"refs/heads/{self.branch}")
        return next((name.strip() for name in found if name.strip()), None)

    def at_its_head(self, git: Git) -> Git:
        """Return git of its repository, at the HEAD of the worktree, whose files may be gone.

        Raises:
            GitError: The worktree is not what its record says.
        """
        self._check_git_dir()
        return git.with_environment({"GIT_DIR": self.git_dir, "GIT_COMMON_DIR": self.common})

    @property
    def has_git_dir(self) -> bool:
        """Return whether the repository still keeps it; another one may have got its folder there."""
        kept_in = os.path.join(self.common, "worktrees")
        is_kept = os.path.dirname(self.git_dir) == kept_in and all(map(_is_folder, (kept_in, self.git_dir)))
        return is_kept and _place_of(self.git_dir) == os.path.join(os.path.realpath(self.path), ".git")

    def _check_git_dir(self) -> None:
        if not self.has_git_dir:
            raise GitError(f"{self.git_dir} is not where {self.common} keeps the worktree {self.path}")


def tree_from(record: Mapping[str, Any]) -> RecordedWorktree | None:
    """Return the worktree that a record describes; None if the worktree was not finished.

    Raises:
        GitError: The record holds what agentctl never writes.
    """
    if "gitDir" not in record:
        return None
    _check_words(record, "gitDir")
    return RecordedWorktree(*(record[key] for key in ("path", "gitDir", "commonDir", "base", "branch", "repository")))


def git_from(record: Mapping[str, Any], limit_s: float) -> Git:
    """Return git for the repository that a record names.

    Raises:
        GitError: The repository is not the one that the worktree was made from, or is gone.
    """
    _check_words(record)
    common: str = record["commonDir"]
    _check_common(common, (record["repository"], record["path"]), limit_s, os.environ)
    return git_of(common, limit_s=limit_s)


def _check_words(record: Mapping[str, Any], *more: str) -> None:
    """Refuse values that git might take for an option, and not for a path, a commit or a branch."""
    for key in ("path", "commonDir", "repository", *more):
        if not _is_path(record.get(key)):
            raise GitError(f"the {key} in worktree.json is not an absolute path")
    if not (_COMMIT.fullmatch(str(record.get("base"))) and _BRANCH.fullmatch(str(record.get("branch")))):
        raise GitError("the base or branch in worktree.json is not that of a worker")


def _is_path(value: object) -> bool:
    """Return whether this is an absolute path that the system accepts."""
    try:
        return isinstance(value, str) and os.path.isabs(value) and b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        return False


def _check_common(common: str, places: tuple[str, ...], limit_s: float, environ: Mapping[str, str]) -> None:
    """Refuse a repository that git itself finds neither from where the worktree was made, nor from the worktree."""
    problem = GitError(f"git finds another one from {places[0]}")
    for place in places:
        try:
            folder = git_in(place, limit_s=limit_s, environ=environ).text("rev-parse", "--git-common-dir")
            if os.path.realpath(os.path.join(place, folder)) == common:
                return
        except GitError as error:
            problem = error
    raise GitError(f"{common} cannot be proven to be the worktree's repository: {problem.message}", hint=problem.steps)


def _is_folder(path: str) -> bool:
    with storage_errors(path, "look at"):
        try:
            return stat.S_ISDIR(os.lstat(path).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False


def _place_of(git_dir: str) -> str | None:
    """Return the path of the `.git` file in the worktree that one of git's folders belongs to."""
    with storage_errors(git_dir, "look into"):
        try:
            pointer = os.fsdecode(read_bytes(os.path.join(git_dir, "gitdir"), _LONGEST_PATH)).rstrip("\n")
        except (FileNotFoundError, NotADirectoryError, Damaged):
            return None
    folder, name = os.path.split(os.path.join(git_dir, pointer))
    return os.path.join(os.path.realpath(folder), name)
