"""What `worktrees` shows: the worktrees of workers, what was changed in them, and what became of them."""

from __future__ import annotations

from typing import Any, NotRequired

from typing_extensions import TypedDict


class LeftOutFile(TypedDict):
    """A file that is in no patch."""

    path: str
    why: str


class WorktreeOverlap(TypedDict):
    """The files that another worker of the task touched too."""

    instance: str
    files: list[str]


class SubmoduleState(TypedDict):
    """What a submodule of a worktree holds that is nowhere else."""

    path: str
    #: How many files are in no commit.
    uncommitted: int
    #: How many commits are on no other branch.
    unmerged: int


class WorktreeState(TypedDict):
    """What a worktree holds now that is nowhere else, with what its submodules hold."""

    #: `in-use clean uncommitted unmerged removed gone unknown`.
    state: str
    #: How many files are in no commit; null if git cannot tell.
    uncommitted: int | None
    #: How many commits are on no other branch; null if git cannot tell.
    unmerged: int | None
    #: Those that hold any.
    submodules: list[SubmoduleState]
    #: Why the state is unknown; otherwise the key is not there.
    problem: NotRequired[str]


class WorktreeRow(WorktreeState):
    """The worktree of a worker."""

    agentInstance: str
    path: str | None
    branch: str | None
    #: The commit that it was made from.
    base: str | None
    #: How many files were changed at the worker's end; null before.
    files: int | None
    overlaps: list[WorktreeOverlap]


class WorktreeRecord(TypedDict):
    """What is recorded of a worktree, whatever became of it since."""

    path: str | None
    branch: str | None
    repository: str | None
    #: The commit that it was made from.
    base: str | None
    #: {at, branchDeleted, submodules}: when `worktrees remove` removed it, and what it kept; null before.
    removed: dict[str, Any] | None
    #: What was changed in it, as `worktree.json` has it; null before the worker's end.
    changes: dict[str, Any] | None
    overlaps: list[WorktreeOverlap]
    #: What a person types to have its changes recorded; only if they should be, and are not.
    next: NotRequired[str]


class ShownWorktree(WorktreeRow):
    """Everything that is known of the worktree of a worker."""

    repository: str | None
    #: {at, branchDeleted, submodules}: when `worktrees remove` removed it, and what it kept; null before.
    removed: dict[str, Any] | None
    #: What was changed in it, as `worktree.json` has it; null before the worker's end.
    changes: dict[str, Any] | None
    #: What a person types to have its changes recorded; only if they should be, and are not.
    next: NotRequired[str]


class DiffFile(TypedDict):
    """A file that a worker has changed."""

    path: str
    #: `added modified deleted`; `touched`, as a driver says, where there is no worktree.
    status: str
    #: Lines; null of what is not text.
    added: int | None
    removed: int | None


class DiffDocument(TypedDict):
    """What a worker has changed."""

    agentInstance: str
    #: `base turn`; null of a worker without a worktree.
    since: str | None
    #: `now end`, the latter that of the worker.
    until: str
    #: The commit or tree that was compared.
    origin: str | None
    #: At most 10,000 of them.
    files: list[DiffFile]
    #: How many there are.
    fileCount: int
    #: Those that cannot be compared.
    leftOut: list[LeftOutFile]
    #: Whether `diff` ends before the last changes.
    cut: bool
    #: The patch, in which bytes that are not UTF-8 are `\\xNN`; null with `--stat`, and without a worktree.
    diff: str | None


class KeptSubmodule(TypedDict):
    """Where the commits of a submodule were kept: in the repository's own submodule, or in a bundle."""

    path: str
    #: How many.
    commits: int
    #: The folder of the repository's own submodule, and the refs there that lead to them.
    repository: NotRequired[str]
    refs: NotRequired[list[str]]
    #: The file, in place of the last two.
    bundle: NotRequired[str]


class RemovedWorktree(TypedDict):
    """A worktree that was removed."""

    agentInstance: str
    #: Always true.
    removed: bool
    path: str
    branch: str
    branchDeleted: bool
    #: Those of whose commits any were kept.
    submodules: list[KeptSubmodule]
