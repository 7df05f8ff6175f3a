"""How a worker gets a git worktree and branch of its own: made before its start, removed if it never starts."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
from collections.abc import Iterable, Mapping
from typing import Any

from agentctl.adapters import processes
from agentctl.adapters.files import (
    create_whole,
    make_folder,
    storage_errors,
)
from agentctl.adapters.git import Git, GitError, git_in, pause_before_try
from agentctl.adapters.paths import FilePath
from agentctl.adapters.processes import Life
from agentctl.adapters.taskdir import Root, WorkerDir
from agentctl.domain.text.containment import lies_in
from agentctl.errors import AgentctlError, Argument, Next, Refused, WithArguments
from agentctl.lean import NamedTuple
from agentctl.operations.where.calling import Caller
from agentctl.supervision.worktree.record import known_record, read_record, write_record
from agentctl.supervision.worktree.recorded import git_from

#: A checkout may fetch large files.
_LIMIT_S = 600.0
_UNDO_LIMIT_S = 60.0
_TRIES = 5
_MOST_NAMES = 1000
#: Definitions and templates in a root belong to the project, the rest to one user and one machine.
_IGNORED = b"# made by agentctl\n/.gitignore\n/tasks/\n/worktrees/\n/archive/\n/removed/\n/current\n/root.lock\n*.tmp\n"


class WorktreeOrigin(NamedTuple):
    """Where a worktree is made from: a folder of a repository, and the commit that is checked out there."""

    #: The top of the working tree.
    repository: str
    #: The folder in it where the worker is to run; empty for the top.
    subfolder: str
    #: The folder that all worktrees of the repository share.
    common: str
    #: Git's own folder for this working tree; mostly the same as `common`.
    git_dir: str
    base: str


def find_origin(cwd: str) -> WorktreeOrigin:
    """Return where a worktree for a worker in `cwd` is made from.

    Raises:
        Refused: There is no repository, no working tree or no commit.
    """
    git = git_in(cwd, limit_s=_LIMIT_S)
    try:
        is_inside = git.text("rev-parse", "--is-inside-work-tree")
    except GitError as error:
        if not error.is_nowhere:
            raise Refused(
                f"no worktree: git cannot read the repository of {cwd}: {error.message}", hint=error.steps
            ) from error
        raise Refused(
            f"no worktree: {cwd} is not in a git repository: {error.message}",
            hint=(
                f"git -C {shlex.quote(cwd)} init makes a repository",
                WithArguments("without ", Argument("worktree"), " the worker runs in the folder itself"),
            ),
        ) from error
    if is_inside != "true":
        raise Refused(f"no worktree: {cwd} is not in a working tree of its repository", hint=Next("another folder"))
    common = os.path.join(cwd, git.text("rev-parse", "--git-common-dir"))
    try:
        base = git.text("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    except GitError as error:
        raise Refused(
            f"no worktree: the repository of {cwd} has no commit yet",
            hint=f"git -C {shlex.quote(cwd)} commit --allow-empty -m begin makes one",
        ) from error
    top, subfolder = git.text("rev-parse", "--show-toplevel"), git.text("rev-parse", "--show-prefix")
    git_dir = git_in(top, limit_s=_LIMIT_S).text("rev-parse", "--absolute-git-dir")
    return WorktreeOrigin(top, subfolder.rstrip("/"), os.path.realpath(common), os.path.realpath(git_dir), base)


def refuse_repository_within(callers: Iterable[tuple[Caller, Mapping[str, Any]]], origin: WorktreeOrigin) -> None:
    """Raise `Refused` if an agent that asks for a worktree of a repository could have made or changed that repository.

    Git runs the filters that its settings name, outside of any sandbox. A sandbox protects only the `.git` of the
    workspace itself, and what is outside of the workspace.

    Args:
        callers: The agents above the new worker, each with its driver's order.
    """
    entry = os.path.join(os.path.realpath(origin.repository), ".git")
    for caller, order in callers:
        walls = order.get("walls") or {}
        workspace = str(walls.get("workspace") or "/")
        kept = os.path.join(workspace, ".git")
        open_folders = [workspace, *(walls.get("temporary") or {}).values()]
        places = {entry, origin.common, origin.git_dir}
        changeable = [
            place
            for place in sorted(places)
            if place != kept and not lies_in(place, kept) and any(lies_in(place, folder) for folder in open_folders)
        ]
        if not order.get("readOnly") and (changeable or entry != walls.get("git")):
            raise Refused(
                f"{caller.instance} could have made or changed the repository of {origin.repository}:"
                " agentctl runs no git there outside of its sandbox",
                hint="start it without a worktree, or in a folder of the repository that you work in;"
                " or leave it to whoever started you",
            )


def make_worktree(worker: WorkerDir, origin: WorktreeOrigin) -> dict[str, Any]:
    """Make a worktree and a branch for a worker; return the content of `worktree.json`.

    The record is on disk before the worktree is made, so that a half-made one can be removed.
    """
    root = worker.task.root
    keep_out_of_git(root)
    git = git_in(origin.repository, limit_s=_LIMIT_S)
    me = processes.identify(os.getpid())
    record: dict[str, Any] = {
        "path": "", "branch": "", "repository": origin.repository, "commonDir": origin.common, "base": origin.base,
        "spawner": me and me.to_json(),
    }  # fmt: skip
    try:
        _refuse_taken_prefix(git, origin)
        for number in range(_TRIES):
            record["path"], record["branch"] = _take_folder(git, worker)
            write_record(worker, record)
            if _add(git, record, number):
                break
        git_dir = git_in(record["path"], limit_s=_LIMIT_S).text("rev-parse", "--absolute-git-dir")
        record |= {"gitDir": git_dir, "cwd": _folder_in(record["path"], origin), "warnings": _warnings(git, record)}
        write_record(worker, record)
    except BaseException as error:
        take_back(worker)
        if isinstance(error, GitError):
            raise Refused(f"no worktree could be made of {origin.repository}: {error.message}") from error
        raise
    return record


def adopt_worktree(worker: WorkerDir, cwd: str) -> dict[str, Any] | None:
    """Give a worker that continues an earlier run the worktree of that run; return None if it had none."""
    for instance in worker.task.instances():
        record = known_record(worker.task.worker(instance))
        path = record.get("path")
        if path and not record.get("removed") and is_within(cwd, path):
            kept = {key: value for key, value in record.items() if key not in ("changes", "spawner")}
            adopted = {**kept, "cwd": cwd, "warnings": [], "adopted": True}
            write_record(worker, adopted)
            return adopted
    return None


def is_within(cwd: str, path: str) -> bool:
    """Return whether a worker's folder is a worktree or below it; links in both are resolved."""
    cwd, path = os.path.realpath(cwd), os.path.realpath(path)
    return cwd == path or cwd.startswith(f"{path}/")


def keep_out_of_git(root: Root) -> None:
    """Keep tasks and worktrees out of the repository that the root may lie in; an existing file is left alone."""
    if not root.gitignore.exists():
        create_whole(root.gitignore, _IGNORED)


def _refuse_taken_prefix(git: Git, origin: WorktreeOrigin) -> None:
    """Raise `Refused` if there is a branch `agentctl`: git then allows no branches below that name."""
    if _is_branch(git, "agentctl"):
        raise Refused(
            f"no worktree: {origin.repository} has a branch named agentctl, so there can be none below that name",
            hint=f"git -C {shlex.quote(origin.repository)} branch -m agentctl OTHER-NAME",
        )


def _is_branch(git: Git, name: str) -> bool:
    try:
        git.run("show-ref", "--verify", "--quiet", f"refs/heads/{name}")
    except GitError:
        return False
    return True


def _take_folder(git: Git, worker: WorkerDir) -> tuple[str, str]:
    """Take a new folder by mkdir, and an unused branch: those of an earlier task of this name may hold work."""
    above = worker.task.root.worktrees / worker.task.id
    if os.path.islink(worker.task.root.worktrees):
        raise Refused(f"{worker.task.root.worktrees} is a link: worktrees are not made through a link")
    for folder in (above.parent, above):
        make_folder(folder)
    for number in range(1, _MOST_NAMES):
        name = worker.instance if number == 1 else f"{worker.instance}-{number}"
        branch = f"agentctl/{worker.task.id}/{name}"
        if _is_branch(git, branch):
            continue
        with storage_errors(above, "make a folder in"), contextlib.suppress(FileExistsError):
            (above / name).mkdir()
            return above / name, branch
    raise Refused(f"no worktree: {above} holds {_MOST_NAMES} worktrees of {worker.instance}", hint=Next("worktrees"))


def _add(git: Git, record: Mapping[str, Any], number: int) -> bool:
    """Add the worktree; return False, with nothing left of it, if another git held a lock."""
    try:
        git.run("worktree", "add", "--no-track", "-b", record["branch"], record["path"], record["base"])
    except GitError as error:
        if not error.is_locked or number == _TRIES - 1:
            raise
        _undo(record)
        pause_before_try(number)
        return False
    return True


def _folder_in(path: str, origin: WorktreeOrigin) -> str:
    """Return the folder of a worktree where its worker is to run; links are resolved, since it confines an agent."""
    folder = os.path.realpath(os.path.join(path, origin.subfolder))
    if not os.path.isdir(folder) or not is_within(folder, path):
        raise Refused(
            f"no worktree: the folder {origin.subfolder} is not in commit {origin.base[:12]}", hint="commit it first"
        )
    return folder


def _warnings(git: Git, record: Mapping[str, Any]) -> list[str]:
    """Return warnings of what a person may expect in the worktree, but is not there."""
    found = []
    with contextlib.suppress(GitError):  # A look that fails is not a reason to refuse.
        changed = git.names("status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=dirty")
        if changed:
            found.append(
                f"{len(changed)} uncommitted changes in {record['repository']} are not in the worktree: it has commit "
                f"{record['base'][:12]}"
            )
    if os.path.exists(os.path.join(record["path"], ".gitmodules")):
        found.append(
            "submodules are empty in a worktree until git submodule update --init is run there; what is committed or"
            " changed in them goes into separate files, not into changes.patch"
        )
    return found


# -- removed again -----------------------------------------------------------------------------------------------------


def is_worktree_being_made(worker: WorkerDir) -> bool:
    """Return whether the spawn that makes a worker's worktree may still be alive."""
    spawner = processes.identity_from(known_record(worker).get("spawner"))
    return spawner is not None and processes.life_of(spawner) is not Life.GONE


def take_back(worker: WorkerDir) -> None:
    """Remove the worktree of a worker whose start failed; nobody knows of it yet."""
    with contextlib.suppress(AgentctlError, OSError):
        record = read_record(worker) or {}
        if record.get("path") and not record.get("adopted") and is_made_for(worker, record["path"]):
            _undo(record)
        if record:
            os.unlink(worker.worktree)


def is_made_for(worker: WorkerDir, path: str) -> bool:
    """Return whether a path is where the worktrees of a worker's task are made."""
    return FilePath(path).parent == worker.task.root.worktrees / worker.task.id


def _undo(record: Mapping[str, Any]) -> None:
    """Remove the folder, git's record of it, and the branch if it still points to its base."""
    path = record["path"]
    with contextlib.suppress(GitError):  # --force twice: git locks a worktree while making it.
        git_from(record, _UNDO_LIMIT_S).patiently("worktree", "remove", "--force", "--force", path)
    shutil.rmtree(path, ignore_errors=True)
    with contextlib.suppress(GitError):  # Refused if another worktree has the branch by now.
        git = git_from(record, _UNDO_LIMIT_S)
        if git.text("rev-parse", "--verify", "--quiet", f"refs/heads/{record['branch']}") == record["base"]:
            git.patiently("branch", "-D", record["branch"])
