"""What the repositories within a worktree hold that is nowhere else: commits, and changed files.

Git clones a submodule into the folder that the repository keeps for that worktree; it goes when the worktree goes. A
worker can also have made a repository within its own, and committed it as a link. All of these are the worker's own:
their settings may name programs, so no git is run in them. Their branches and objects are read through a repository
that is made for the look.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count

from agentctl.adapters.files import storage_errors, sync_folder
from agentctl.adapters.git import Git, GitError
from agentctl.adapters.opening import read_bytes
from agentctl.adapters.taskdir import WorkerDir
from agentctl.lean import Any, NamedTuple
from agentctl.supervision.worktree.aside import (
    CHANGED_FILES,
    MOST_BYTES,
    MOST_FILES,
    described,
    files_of,
    git_aside,
    new_file,
    scratch_folder,
    take_in,
    write_patch,
)
from agentctl.supervision.worktree.recorded import RecordedWorktree

_COMMIT, _SHORT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?"), 40
#: The name of a branch or tag as far as it can be kept as it is; git allows more.
_NAME = re.compile(r"(?!.*(\.\.|//|/\.|\.lock(/|$)))[A-Za-z0-9_][A-Za-z0-9._/+-]*(?<![./])")
_LINK = b"160000 "
_POINTER = "gitdir: "
_LONGEST_PATH = 8192
_MOST_READ = 64 << 20
_MOST_REPOSITORIES = 10_000
_REMOTE = "refs/remotes/"
#: The settings of a repository that is made for a look; and of one with long names of objects.
_SETTINGS = "[core]\nrepositoryformatversion = 1\nbare = false\n"
_LONG = "[extensions]\nobjectformat = sha256\n"


class InnerRepository(NamedTuple):
    """A repository within a worktree, which is removed with it."""

    #: Where it lies in the worktree; for one that does not lie there any more, git's name of it.
    path: str
    #: The folder with its branches and objects.
    git_dir: str
    #: Its working files, if they are there.
    folder: str | None
    #: Where the main repository keeps the same submodule, if it does.
    store: str | None


class InnerWork(NamedTuple):
    """What such a repository holds, for as long as it is looked at."""

    repository: InnerRepository
    #: git with its branches, its objects and a copy of its index, but with none of its settings.
    git: Git
    #: What is checked out; None before its first commit.
    head: str | None
    #: The refs under which its commits are kept, of which each begins with `prefix`.
    refs: Mapping[str, str]
    prefix: str
    #: What the main repository's own submodule has, and what was fetched or pushed.
    stored: frozenset[str]
    elsewhere: frozenset[str]
    #: How many commits are neither here nor there.
    commits: int
    #: How many files differ from `head`.
    changed: int

    @property
    def base(self) -> str:
        """Return what its working files are compared with."""
        return self.head or self.git.text("hash-object", "-t", "tree", "--stdin")


@contextlib.contextmanager
def inner_work(git: Git, tree: RecordedWorktree, worker: WorkerDir) -> Iterator[list[InnerWork]]:
    """Give what each repository within a worktree holds, whose own files may be gone.

    Args:
        git: That of the worktree, which was checked against its record.

    Raises:
        GitError: It cannot be told of one of them.
    """
    try:
        modules, stores = (os.path.join(place, "modules") for place in (tree.git_dir, tree.common))
        kept = _kept_below(modules, stores) if tree.has_git_dir else {}
        linked = _populated(tree.path, _links(git)) if os.path.isdir(tree.path) else []
        if not kept and not linked:
            yield []
            return
        with scratch_folder(worker) as scratch:
            prefix = f"refs/agentctl/{worker.task.id}/{worker.instance}"
            yield list(_Look(git, scratch, prefix).work(tree, kept, linked))
    except OSError as error:
        raise GitError(f"the submodules of {tree.path} cannot be read: {error}") from error


class _Look:
    """One look at the repositories of a worktree."""

    def __init__(self, git: Git, scratch: str, prefix: str) -> None:
        self.git, self.scratch, self.prefix, self.count = git, scratch, prefix, 0

    def work(
        self, tree: RecordedWorktree, kept: dict[str, InnerRepository], linked: list[tuple[str, str]]
    ) -> Iterator[InnerWork]:
        """Yield what all of them hold: first those whose files are there, with those within them."""
        pending = list(linked)
        while pending:
            folder, git_dir = pending.pop()
            path = os.path.relpath(folder, os.path.realpath(tree.path))
            if git_dir == os.path.join(folder, ".git"):
                known = InnerRepository(path, git_dir, folder, None)
                kept |= _kept_below(os.path.join(git_dir, "modules"), None)
            elif git_dir in kept:
                known = kept.pop(git_dir)._replace(path=path, folder=folder)
            else:
                raise GitError(f"the submodule {path} belongs to {git_dir}, which is not the worktree's")
            found = self._held(known)
            yield found
            pending += _populated(folder, _links(found.git))
        yield from map(self._held, kept.values())

    def _held(self, known: InnerRepository) -> InnerWork:
        self.count += 1
        if self.count > _MOST_REPOSITORIES:
            raise GitError(f"more than {_MOST_REPOSITORIES} submodules")
        own, stored = _refs_in(known.git_dir), {} if known.store is None else _refs_in(known.store)
        remote = {commit for name, commit in own.items() if name.startswith(_REMOTE)}
        mine = {name: commit for name, commit in own.items() if not name.startswith(_REMOTE)}
        head, elsewhere, prefix = mine.get("HEAD"), frozenset({*remote, *stored.values()}), self._free_prefix(stored)
        refs = {f"{prefix}/{name}": commit for name, commit in _renamed(mine).items()}
        git = self._stand_in(known, head, refs)
        commits = int(git.run("rev-list", "--count", *_OWN, stdin=_without(elsewhere))) if mine else 0
        changed = len(git.names("status", *CHANGED_FILES)) if known.folder else 0
        return InnerWork(known, git, head, refs, prefix, frozenset(stored.values()), elsewhere, commits, changed)

    def _free_prefix(self, stored: Mapping[str, str]) -> str:
        """Return a prefix of refs that is not in use: an earlier worker of this name may have kept something."""
        numbered = (self.prefix if number == 1 else f"{self.prefix}-{number}" for number in count(1))
        return next(prefix for prefix in numbered if not any(name.startswith(f"{prefix}/") for name in stored))

    def _stand_in(self, known: InnerRepository, head: str | None, refs: Mapping[str, str]) -> Git:
        """Make a repository with the branches, objects and index of another one, and with settings of our own."""
        place, stores = os.path.join(self.scratch, str(self.count)), [known.git_dir, *filter(None, [known.store])]
        for folder in ("aside", "info", "objects", "refs"):
            os.makedirs(os.path.join(place, folder))
        is_long = any(len(commit) > _SHORT for commit in refs.values())
        for name, text in {
            "HEAD": f"{head or 'ref: refs/heads/none'}\n",
            "config": _SETTINGS + (_LONG if is_long else ""),
            "packed-refs": "".join(f"{commit} {name}\n" for name, commit in refs.items()),
            "shallow": "".join(_read(os.path.join(folder, "shallow")) for folder in stores),
            "info/exclude": _read(os.path.join(known.git_dir, "info", "exclude")),
        }.items():
            if text:
                with open(os.path.join(place, name), "w", encoding="utf-8", errors="surrogateescape") as file:
                    file.write(text)
        folder = known.folder or place
        git = self.git.elsewhere(folder, {"GIT_DIR": place} | ({"GIT_WORK_TREE": folder} if known.folder else {}))
        base = head or git.text("hash-object", "-t", "tree", "--stdin")
        as_tree = RecordedWorktree(folder, known.git_dir, known.git_dir, base, "", folder)
        more = [os.path.join(each, "objects") for each in stores]
        return git_aside(git, as_tree, os.path.join(place, "aside"), known=more)


#: The commits of a stand-in, without those on stdin, which it may not have.
_OWN = ("--all", "--ignore-missing", "--stdin")


def _without(commits: Iterable[str]) -> bytes:
    return "".join(f"^{commit}\n" for commit in sorted(commits)).encode()


# -- where they are ----------------------------------------------------------------------------------------------------


def _kept_below(modules: str, store: str | None) -> dict[str, InnerRepository]:
    """Return the repositories that git keeps in a folder `modules`, those of nested submodules too, by their folder."""
    found, pending = dict[str, InnerRepository](), [("", modules, store)]
    while pending:
        name, folder, beside = pending.pop()
        if not _is_folder(folder):
            continue
        for child in sorted(os.listdir(folder)):
            place, other = os.path.join(folder, child), beside and os.path.join(beside, child)
            whole = os.path.join(name, child)
            if _is_repository(place):
                is_there = other is not None and _is_repository(other) and os.path.realpath(other) == other
                found[os.path.realpath(place)] = InnerRepository(whole, place, None, other if is_there else None)
                place, other = os.path.join(place, "modules"), other and os.path.join(other, "modules")
            pending.append((whole, place, other))
        if len(found) + len(pending) > _MOST_REPOSITORIES:
            raise GitError(f"more than {_MOST_REPOSITORIES} submodules in {modules}")
    return found


def _is_repository(folder: str) -> bool:
    return _is_folder(os.path.join(folder, "objects")) and os.path.lexists(os.path.join(folder, "refs"))


def _is_folder(path: str) -> bool:
    return os.path.lexists(path) and stat.S_ISDIR(os.lstat(path).st_mode)


def _links(git: Git) -> list[str]:
    """Return the paths at which an index has a commit of another repository."""
    entries = git.run("ls-files", "--stage", "-z").split(b"\0")
    return [os.fsdecode(entry.partition(b"\t")[2]) for entry in entries if entry.startswith(_LINK)]


def _populated(top: str, links: Sequence[str]) -> list[tuple[str, str]]:
    """Return (folder, git's folder) of those links at which a repository lies."""
    found = []
    for link in links:
        folder = os.path.join(os.path.realpath(top), link)
        # A link in its place, or above it, leads out of the worktree: git then calls it changed.
        git_dir = _git_dir_at(folder) if os.path.realpath(folder) == folder else None
        if git_dir is not None:
            found.append((folder, git_dir))
    return found


def _git_dir_at(folder: str) -> str | None:
    """Return where the `.git` of a folder leads; None where there is none."""
    entry = os.path.join(folder, ".git")
    if not os.path.lexists(entry):
        return None
    if _is_folder(entry):
        return entry
    pointer = os.fsdecode(read_bytes(entry, _LONGEST_PATH))
    if not pointer.startswith(_POINTER):
        raise GitError(f"{entry} does not lead to a repository")
    return os.path.realpath(os.path.join(folder, pointer.removeprefix(_POINTER).rstrip("\n")))


# -- what they hold ----------------------------------------------------------------------------------------------------


def _refs_in(git_dir: str) -> dict[str, str]:
    """Return the commit of each ref of a repository, of its HEAD, and of each entry of its stash, read as files."""
    if os.path.lexists(os.path.join(git_dir, "reftable")):
        raise GitError(f"{git_dir} keeps its branches in a form that agentctl does not read (reftable)")
    found = {}
    for line in _read(os.path.join(git_dir, "packed-refs")).splitlines():
        commit, _, name = line.partition(" ")
        if _COMMIT.fullmatch(commit) and name:
            found[name] = commit
    symbolic = {}
    for name in ["HEAD", *_loose_refs(git_dir)]:
        value = _read(os.path.join(git_dir, name)).strip()
        if value.startswith("ref: "):
            symbolic[name] = value.removeprefix("ref: ").strip()
        elif _COMMIT.fullmatch(value):
            found[name] = value
        elif name != "HEAD" or value:
            raise GitError(f"{os.path.join(git_dir, name)} names no commit")
    found |= {name: found[target] for name, target in symbolic.items() if target in found}
    for number, line in enumerate(_read(os.path.join(git_dir, "logs", "refs", "stash")).splitlines()):
        stashed = line.split(" ")[1:2]
        if stashed and _COMMIT.fullmatch(stashed[0]):
            found[f"refs/stash-{number}"] = stashed[0]
    return found


def _loose_refs(git_dir: str) -> Iterator[str]:
    def refuse(error: OSError) -> None:
        raise error

    for folder, _, names in os.walk(os.path.join(git_dir, "refs"), onerror=refuse):
        for name in names:
            if not name.endswith(".lock"):
                yield os.path.relpath(os.path.join(folder, name), git_dir)


def _read(path: str) -> str:
    """Return the text of a file; "" where there is none."""
    try:
        return os.fsdecode(read_bytes(path, _MOST_READ))
    except (FileNotFoundError, NotADirectoryError):
        return ""


def _renamed(refs: Mapping[str, str]) -> dict[str, str]:
    """Return refs by the end of the name under which they are kept."""
    shown = ((name.removeprefix("refs/"), commit) for name, commit in refs.items())
    return {
        name if _NAME.fullmatch(name) else f"unnamed/{number}": commit for number, (name, commit) in enumerate(shown)
    }


# -- kept --------------------------------------------------------------------------------------------------------------


def record_inner(git: Git, tree: RecordedWorktree, worker: WorkerDir) -> list[dict[str, Any]]:
    """Keep what is only in the repositories within a worktree among the worker's files; return what that is."""
    with inner_work(git, tree, worker) as found:
        return [keep_work(one, worker, MOST_BYTES) for one in found if one.commits or one.changed]


def keep_work(work: InnerWork, worker: WorkerDir, most: int | None = None) -> dict[str, Any]:
    """Keep commits in a bundle, and changes of working files in a patch; return what was kept, and what was not.

    Raises:
        GitError: The commits cannot be read.
    """
    found: dict[str, Any] = {
        "path": work.repository.path, "head": work.head, "commits": work.commits, "files": work.changed, "kept": [],
    }  # fmt: skip
    with storage_errors(worker.submodules, "make a folder in"), contextlib.suppress(FileExistsError):
        os.mkdir(worker.submodules, 0o700)
    stem = os.path.join(worker.submodules, os.urandom(4).hex())
    if work.commits:
        bundle = _write_bundle(work, work.elsewhere, f"{stem}.bundle", most)
        if bundle is None:
            found["why"] = f"its commits take more than {most} bytes"
        else:
            found["kept"].append(bundle)
    if work.changed and work.repository.folder is not None:
        left_out = take_in(work.git, work.repository.folder)
        if left_out:
            found["leftOut"] = left_out[:MOST_FILES]
        if files_of(work.git, work.base):
            patch = write_patch(work.git, work.base, f"{stem}.patch", f"{stem}.patch")
            found["kept"].append({"path": patch.pop("patch"), **patch})
    sync_folder(worker.submodules)
    for file in found["kept"]:
        file["path"] = os.path.relpath(file["path"], worker.path)
    return found


def _write_bundle(work: InnerWork, without: Iterable[str], path: str, most: int | None) -> dict[str, Any] | None:
    """Write the commits of a repository without others into a new file; return None if they take too much."""
    with new_file(path) as file:
        try:
            work.git.run("bundle", "create", "-q", "-", *_OWN, stdin=_without(without), into=file, most_bytes=most)
        except GitError:
            is_full = most is not None and os.fstat(file.fileno()).st_size >= most
            os.unlink(path)
            if is_full:
                return None
            raise
        return described(file, path)


def give_commits(work: InnerWork, worker: WorkerDir) -> tuple[str, list[str]]:
    """Copy the commits into the main repository's own submodule; return where that is, and the refs that lead to them.

    Raises:
        GitError: That is not possible: nothing was changed but objects that nothing leads to.
    """
    store = work.repository.store
    if store is None:
        raise GitError(f"the repository has no submodule {work.repository.path} of its own yet")
    # Its settings name a working folder, which need not be there.
    git = work.git.elsewhere(store, {"GIT_DIR": store, "GIT_WORK_TREE": store})
    with scratch_folder(worker) as scratch:
        bundle = os.path.join(scratch, "bundle")
        _write_bundle(work, work.stored, bundle, None)
        git.run("bundle", "unbundle", bundle)
        heads = git.run("bundle", "list-heads", bundle).decode().splitlines()
    refs = [name for _, _, name in (line.partition(" ") for line in heads) if name in work.refs]
    updates = "".join(f"create {name} {work.refs[name]}\n" for name in refs)
    git.run("update-ref", "--stdin", stdin=updates.encode())
    return store, refs
