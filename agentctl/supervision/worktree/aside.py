"""What a worktree holds now, as an index aside: neither the worktree nor its repository is touched to look at it.

New objects go into a folder of their own, so nothing is left in the repository, and nothing that its garbage collector
could take away.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from io import BufferedRandom

from agentctl.adapters.git import Git, GitError, GitTimeout, quoted_alternate
from agentctl.adapters.locks import try_lock
from agentctl.adapters.opening import OddFile, open_plain, pieces
from agentctl.adapters.taskdir import WorkerDir
from agentctl.errors import AgentctlError
from agentctl.lean import TYPE_CHECKING, Any
from agentctl.supervision.worktree.recorded import RecordedWorktree

if TYPE_CHECKING:
    from agentctl.domain.documents.worktrees import LeftOutFile

#: A patch is cut at this size, and larger files are left out of it.
MOST_BYTES = 64 << 20
#: The limit for all files together: a worker may have installed very much that git was not told to ignore.
MOST_TAKEN_BYTES = 4 * MOST_BYTES
MOST_FILES = 10_000
#: The index of a repository with a million files has some 100 MB.
MOST_INDEX_BYTES = 4 * MOST_BYTES
_SCRATCH = re.compile(r"changes\.(\d+)\..*\.scratch")
#: The differences of an index from a tree, whatever the repository and the user have set for reading them.
DIFF = ("diff-index", "--cached", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none")
#: The same, in the form that `git apply` takes.
AS_PATCH = (*DIFF, "-p", "--binary", "--full-index", "--no-color", "--src-prefix=a/", "--dst-prefix=b/")
#: What `git status` takes for all files that differ from the last commit. Submodules are not entered: an agent can
#: change their settings.
CHANGED_FILES = ("--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=dirty")
_CHANGES = {"A": "added", "M": "modified", "D": "deleted", "T": "modified"}


@contextlib.contextmanager
def scratch_folder(worker: WorkerDir) -> Iterator[str]:
    """Give a folder for one look at a worktree, and remove those of looks whose programs were killed."""
    for path in abandoned_scratch(worker):
        shutil.rmtree(path, ignore_errors=True)
    scratch = tempfile.mkdtemp(prefix=f"changes.{os.getpid()}.", suffix=".scratch", dir=worker.path)
    lock = None
    try:
        lock = try_lock(f"{scratch}/")  # For a program in another pid namespace, which does not see this process.
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def abandoned_scratch(worker: WorkerDir) -> list[str]:
    """Return the folders of looks whose programs were killed."""
    found = ((name, _SCRATCH.fullmatch(name)) for name in sorted(os.listdir(worker.path)))
    paths = [(os.path.join(worker.path, name), named[1]) for name, named in found if named]
    return [path for path, pid in paths if not os.path.exists(f"/proc/{pid}") and not _is_locked(path)]


def _is_locked(folder: str) -> bool:
    """Return whether a look holds its folder; what cannot be opened is left alone as if one did."""
    lock = None
    with contextlib.suppress(OSError, AgentctlError):
        lock = try_lock(f"{folder}/")
    if lock is not None:
        os.close(lock)
    return lock is None


def git_aside(git: Git, tree: RecordedWorktree, scratch: str, *, known: Sequence[str] = ()) -> Git:
    """Return git with a copy of the worktree's index, and with a folder of its own for new objects.

    Args:
        scratch: A folder that gets both, `index` and `objects`.
        known: More folders of objects that it can read.
    """
    index, objects = os.path.join(scratch, "index"), os.path.join(scratch, "objects")
    os.mkdir(objects)
    aside = git.with_environment(
        {
            "GIT_INDEX_FILE": index,
            "GIT_OBJECT_DIRECTORY": objects,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": ":".join(
                quoted_alternate(folder) for folder in (os.path.join(tree.common, "objects"), *known)
            ),
        }
    )
    try:
        _copy_index(os.path.join(tree.git_dir, "index"), index)
        aside.run("ls-files", "--stage", "--", ":(exclude)*")  # Reads the index, and prints nothing.
    except (OSError, GitError):  # A missing, damaged or odd index: all files are read again.
        if os.path.exists(index):
            os.unlink(index)
        aside.run("read-tree", tree.base)
    return aside


def git_with_index(git: Git, scratch: str, commit: str) -> Git:
    """Return git of a repository with an index, in a scratch folder, of what a commit holds."""
    aside = git.with_environment({"GIT_INDEX_FILE": os.path.join(scratch, "index")})
    aside.run("read-tree", commit)
    return aside


def _copy_index(path: str, copy: str) -> None:
    """Copy an index; a worker can put anything in its place, endless too."""
    fd = open_plain(path)
    try:
        size = os.fstat(fd).st_size
        if size > MOST_INDEX_BYTES:
            raise OddFile(f"{path} is larger than {MOST_INDEX_BYTES} bytes")
        with open(copy, "xb") as file:
            for offset, data in pieces(fd, 0, size):
                file.seek(offset)
                file.write(data)
            file.truncate(size)
    finally:
        os.close(fd)


def take_in(git: Git, folder: str) -> list[LeftOutFile]:
    """Add what lies in a worktree to the index; return what cannot be added, and why.

    `git add` would do, but it runs `git status` within submodules, whose settings an agent can change.
    """
    names = git.names("ls-files", "-z", "--modified", "--deleted", "--others", "--exclude-standard")
    taken, room = [], MOST_TAKEN_BYTES
    left_out: list[LeftOutFile] = []
    for name in sorted(set(names), key=os.fsencode):  # A file that became a folder comes before the folder's content.
        why, size = _look_at(os.path.join(folder, name))
        if why is None and size > room:
            why = f"{size} bytes: all files together exceed {MOST_TAKEN_BYTES}"
        if why is None:
            taken.append(name)
            room -= size
        else:
            left_out.append({"path": name, "why": why})
    return [*left_out, *_update(git, taken)]


def _update(git: Git, names: list[str]) -> list[LeftOutFile]:
    """Add files to the index; return those that git cannot take, such as one in an encoding that it does not know."""
    listed = b"".join(os.fsencode(name) + b"\0" for name in names)
    try:
        git.run("update-index", "-z", "--add", "--remove", "--replace", "--stdin", stdin=listed)
    except GitTimeout:
        raise
    except GitError as error:  # It has changed nothing.
        if len(names) < 2:
            return [{"path": name, "why": error.message} for name in names]
        half = len(names) // 2
        return [*_update(git, names[:half]), *_update(git, names[half:])]
    return []


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


# -- what differs ------------------------------------------------------------------------------------------------------


def files_of(git: Git, base: str) -> list[tuple[str, str]]:
    """Return (path, change) of each file of an index that differs from a commit or tree."""
    fields = git.names(*DIFF, "-z", "--name-status", base, "--")
    letters, names = fields[::2], fields[1::2]
    return sorted((name, _CHANGES.get(letter[:1], letter)) for letter, name in zip(letters, names, strict=True))


def write_patch(git: Git, base: str, draft: str, path: str) -> dict[str, Any]:
    """Write the patch to `draft` as `git apply` takes it, whatever the user has set for reading diffs."""
    with new_file(draft) as file:
        try:
            git.run(*AS_PATCH, base, "--", into=file, most_bytes=MOST_BYTES)
        except GitError:
            if os.fstat(file.fileno()).st_size < MOST_BYTES:
                raise
        written = described(file, path)
    return {"patch": path, "size": written["size"], "sha256": written["sha256"]} | (
        {"cut": True} if written["size"] >= MOST_BYTES else {}
    )


def new_file(path: str) -> BufferedRandom:
    """Open a new private file for writing and reading."""
    return open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "rb+")


def described(file: BufferedRandom, path: str) -> dict[str, Any]:
    """Make a written file durable; return {path, size, sha256} of it."""
    file.seek(0)
    digest = hashlib.file_digest(file, "sha256").hexdigest()
    os.fsync(file.fileno())
    return {"path": path, "size": os.fstat(file.fileno()).st_size, "sha256": digest}
