"""What a worker has changed in its worktree: the files and the unified diff, at any time of its life.

While it runs, its working files are compared as they are, new ones too. What it had changed when it ended is in its
`changes.patch`, even if the worktree is gone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from enum import StrEnum
from itertools import islice

from agentctl.adapters.files import read_known
from agentctl.adapters.git import Git, GitError, GitTimeout
from agentctl.adapters.opening import open_plain
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.domain.text.patchtext import PatchedFile, files_in
from agentctl.errors import AtTerminal, Next, NotFound, Refused
from agentctl.lean import TYPE_CHECKING, Any, NamedTuple
from agentctl.operations.where.locating import find_worker
from agentctl.operations.where.ownership import check_own
from agentctl.operations.worktree.changes import changes_of, ensure_recorded
from agentctl.supervision.worktree.aside import AS_PATCH, MOST_BYTES, MOST_FILES, git_aside, scratch_folder, take_in
from agentctl.supervision.worktree.record import known_record
from agentctl.supervision.worktree.recorded import RecordedWorktree, tree_from
from agentctl.supervision.worktree.turns import objects_of, turns_of

if TYPE_CHECKING:
    from typing import IO

    from agentctl.domain.documents.worktrees import LeftOutFile

_LIMIT_S = 60.0
#: How often a look is begun anew: a worker that makes and removes files can be in its way.
_TRIES = 3
_PIECE = 1 << 16


class Since(StrEnum):
    """From when on changes are told."""

    #: The commit from which the worktree was made.
    BASE = "base"
    #: The beginning of the agent's last turn.
    TURN = "turn"


class Until(StrEnum):
    """Until when they are told."""

    NOW = "now"
    #: The worker's end.
    END = "end"


class WorktreeDiff(NamedTuple):
    """What was changed. Its text is in the file that was given."""

    #: None of a worker without a worktree: `files` are those that its driver says it touched.
    since: Since | None
    until: Until
    #: The commit or tree that was compared.
    origin: str | None
    #: The first of them.
    files: tuple[PatchedFile, ...]
    #: How many others there are.
    more_files: int = 0
    #: The text ends before the last changes.
    is_cut: bool = False
    #: Files that cannot be compared.
    left_out: tuple[LeftOutFile, ...] = ()


def make_diff(
    task: TaskDir, instance: str, since: Since, into: IO[bytes], *, most_bytes: int = MOST_BYTES,
    limit_s: float = _LIMIT_S,
) -> WorktreeDiff:  # fmt: skip
    """Write what a worker has changed into an empty file, and return which files these are.

    Raises:
        NotFound: It has no worktree, and no driver says what it touched.
        Refused: It can no longer be told.
        GitError: git fails, or takes longer than `limit_s`.
    """
    check_own(task)
    worker = find_worker(task, instance)
    record = known_record(worker)
    if not record:
        return _touched(worker)
    tree = _turn_begin(worker, record) if since is Since.TURN else None
    if tree is None and worker.has_ended:
        ensure_recorded(worker)
        changes = changes_of(known_record(worker))
        if changes and "error" not in changes:
            return _recorded(worker, record, changes, since, into, most_bytes)
    if record.get("removed"):
        raise Refused(
            f"the worktree of {instance} was removed: what was changed in it since then is no longer known",
            hint=Next("diff", instance),
        )
    return _live(worker, record, since, tree, into, most_bytes, limit_s)


def _touched(worker: WorkerDir) -> WorktreeDiff:
    found = read_known(worker.result).get("touchedFiles")
    paths = [path for path in found if isinstance(path, str)] if isinstance(found, list) else []
    if not paths:
        raise NotFound(
            f"{worker.instance} has no worktree, so nobody knows which files it changed",
            hint=Next("make a worktree"),
        )
    files = (PatchedFile(path.encode("utf-8", "surrogateescape"), "touched", None, None, 0, 0) for path in paths)
    return WorktreeDiff(None, Until.NOW, None, *_first(files))


def _turn_begin(worker: WorkerDir, record: Mapping[str, Any]) -> str | None:
    """Return the tree at the beginning of a worker's last turn; None where that is its base."""
    turns = turns_of(worker)
    before = max(0, turns.last - 1)
    tree = turns.trees.get(before)
    if tree is None and (before or (turns.last and record.get("adopted"))):
        raise Refused(
            f"what the worktree of {worker.instance} held when its last turn began was not noted",
            hint=Next("diff", worker.instance),
        )
    return tree


def _recorded(
    worker: WorkerDir, record: Mapping[str, Any], changes: Mapping[str, Any], since: Since, into: IO[bytes], most: int
) -> WorktreeDiff:
    """Return what a worker had changed when it ended."""
    is_cut = bool(changes.get("cut"))
    if changes.get("patch"):
        with open(open_plain(worker.patch), "rb") as patch:
            _copy(patch, into, most)
            is_cut = is_cut or bool(patch.read(1))
    left_out = tuple(changes.get("leftOut") or ())
    return WorktreeDiff(since, Until.END, record.get("base"), *_files(into), is_cut, left_out)


def _copy(source: IO[bytes], into: IO[bytes], most: int) -> None:
    while most > 0 and (data := source.read(min(_PIECE, most))):
        into.write(data)
        most -= len(data)


def _live(
    worker: WorkerDir, record: Mapping[str, Any], since: Since, tree: str | None, into: IO[bytes], most: int,
    limit_s: float,
) -> WorktreeDiff:  # fmt: skip
    """Return what is changed in a worktree now."""
    recorded = tree_from(record)
    if recorded is None:
        raise Refused(f"the worktree of {worker.instance} was never finished", hint=AtTerminal("agentctl doctor"))
    git = recorded.git(limit_s)
    origin = tree or recorded.base
    known = [] if tree is None else [objects_of(worker, tree)]
    for number in range(_TRIES):
        into.seek(0)
        into.truncate()
        try:
            is_cut, left_out = _look(git, recorded, worker, origin, known, into, most)
            return WorktreeDiff(since, Until.NOW, origin, *_files(into), is_cut, left_out)
        except GitTimeout:
            raise
        except GitError:
            if number == _TRIES - 1:
                raise
    raise AssertionError


def _look(
    git: Git, recorded: RecordedWorktree, worker: WorkerDir, origin: str, known: list[str], into: IO[bytes], most: int
) -> tuple[bool, tuple[LeftOutFile, ...]]:
    """Write the diff; return whether it was cut, and what is not in it."""
    with scratch_folder(worker) as scratch:
        aside = git_aside(git, recorded, scratch, known=known)
        left_out = tuple(take_in(aside, recorded.path)[:MOST_FILES])
        try:
            aside.run(*AS_PATCH, origin, "--", into=into, most_bytes=most)
        except GitTimeout:
            raise
        except GitError:
            if os.fstat(into.fileno()).st_size < most:
                raise
            return True, left_out
        return False, left_out


def _files(patch: IO[bytes]) -> tuple[tuple[PatchedFile, ...], int]:
    patch.seek(0)
    return _first(files_in(_pieces(patch)))


def _first(files: Iterator[PatchedFile]) -> tuple[tuple[PatchedFile, ...], int]:
    """Return the files that are told, and how many others there are: a patch may be of half a million."""
    return tuple(islice(files, MOST_FILES)), sum(1 for _ in files)


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file; a long one in several pieces."""
    while piece := file.readline(_PIECE):
        yield piece
