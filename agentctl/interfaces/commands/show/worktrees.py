"""`worktrees list|show|diff|remove`, `diff`: the git worktrees of workers, and what was changed in them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence

from agentctl.domain.text.plaintext import plain
from agentctl.errors import AgentctlError, ExitCode
from agentctl.interfaces.commands.model.command_model import (
    CHOICE,
    FINDS,
    FLAG,
    Command,
    Family,
    Parameter,
    Raw,
    Showing,
    Shown,
    Table,
)
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import IN_TASK, INSTANCE, SOME_INSTANCES
from agentctl.interfaces.commands.parts.worktree_notes import held_in_words, worktree_notes
from agentctl.interfaces.words.outline import fields, outline
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.worktree.changes import list_worktrees, show_worktree
from agentctl.operations.worktree.diff import Since, WorktreeDiff, make_diff
from agentctl.operations.worktree.removing import remove_worktree

if TYPE_CHECKING:
    from typing import IO

    from agentctl.domain.documents.worktrees import DiffDocument, DiffFile, RemovedWorktree, ShownWorktree, WorktreeRow

_HEADS = ("instance", "state", "uncommitted", "unmerged", "files", "branch", "path")


def list_worktrees_command(call: Invocation) -> Shown[list[WorktreeRow]]:
    """List the worktrees of a task, and whether they contain work that is nowhere else.

    State: in-use, clean (can be removed), uncommitted, unmerged, removed, gone (not removed by agentctl), unknown.

    On a command line:
        To a pipe, one line each: instance, state, uncommitted files, unmerged commits, files changed, branch, path.
    """
    rows = list_worktrees(call.task_to_show())
    columns = [
        (
            row["agentInstance"],
            row["state"],
            row["uncommitted"],
            row["unmerged"],
            row["files"],
            row["branch"],
            row["path"],
        )
        for row in rows
    ]
    notes = [*_overlaps(rows), *_within(rows)]
    return Shown(rows, (fields(*row) for row in columns), lambda: _table(columns), notes)


def _within(rows: list[WorktreeRow]) -> Iterator[str]:
    for row in rows:
        for one in row["submodules"]:
            held = held_in_words(one["unmerged"], one["uncommitted"])
            yield f"{row['agentInstance']}: its submodule {plain(one['path'])} has {held} that are nowhere else"


def _overlaps(rows: list[WorktreeRow]) -> Iterator[str]:
    for row in rows:
        for overlap in row["overlaps"]:
            if overlap["instance"] < row["agentInstance"]:
                continue  # Noted with the other one.
            files = ", ".join(overlap["files"][:5]) + (", ..." if len(overlap["files"]) > 5 else "")
            yield f"{row['agentInstance']} and {overlap['instance']} touched the same files: {plain(files)}"


def _table(columns: Sequence[Sequence[object]]) -> Table | list[str]:
    if not columns:
        return ["no worker of this task has a worktree"]
    gives_way = ("path", "branch", "files", "unmerged", "uncommitted")
    return Table(_HEADS, columns, wide="path", gives_way=gives_way, right=("uncommitted", "unmerged", "files"))


def show_worktree_command(call: Invocation, *, instance: str) -> Shown[ShownWorktree]:
    """Show a worktree: its branch, the files that were changed in it, its patch, and who touched the same files."""
    worktree = show_worktree(call.task_to_show(), instance)
    return Shown(worktree, outline(worktree), notes=worktree_notes(worktree))


def diff(call: Invocation, *, instance: str, since: str = Since.BASE, stat: bool = False) -> Showing[DiffDocument]:
    """Show what a worker has changed in its worktree, also while it works.

    These are commits, changes and new files. For a worker that has ended, this is what it had changed by then.

    On a command line:
        On a terminal control characters are shown, not obeyed; to a pipe every byte is passed unchanged. With --stat,
        one line for each file: added lines, removed lines (- where it is not text), what was done to it, its path.
    """
    task = call.task_to_show()
    with tempfile.TemporaryFile() as text:
        found = make_diff(task, instance, Since(since), text)
        text.seek(0)
        if call.json:
            yield Shown(_diff_as_json(instance, found, None if stat or found.since is None else text))
        elif stat or found.since is None:
            yield Shown(None, _stat(found))
        else:
            yield from _pieces(call, text)
        call.note_all(() if call.json else _missing(found))
    return ExitCode.DONE


def _diff_as_json(instance: str, found: WorktreeDiff, text: IO[bytes] | None) -> DiffDocument:
    files: list[DiffFile] = [
        {"path": os.fsdecode(file.path), "status": file.status, "added": file.added, "removed": file.removed}
        for file in found.files
    ]
    return {
        "agentInstance": instance, "since": found.since, "until": found.until, "origin": found.origin, "files": files,
        "fileCount": len(found.files) + found.more_files, "leftOut": list(found.left_out), "cut": found.is_cut,
        "diff": None if text is None else text.read().decode(errors="backslashreplace"),
    }  # fmt: skip


def _stat(found: WorktreeDiff) -> Iterator[str]:
    for file in found.files:
        added, removed = ("-" if number is None else number for number in (file.added, file.removed))
        yield fields(added, removed, file.status, os.fsdecode(file.path))


def _pieces(call: Invocation, text: IO[bytes]) -> Iterator[Raw]:
    """Yield a diff; git's own names in it are quoted, but not the content of the files."""
    if call.draws:
        yield from (Raw(plain(line.decode(errors="backslashreplace"), keep="\n\t")) for line in text)
    else:
        yield from (Raw(piece) for piece in iter(lambda: text.read(1 << 16), b""))


def _missing(found: WorktreeDiff) -> Iterator[str]:
    """Yield what is not in a diff."""
    if found.since is None:
        yield "it has no worktree; its driver says that it touched these files"
    elif not found.files and not found.left_out:
        yield "nothing was changed"
    for one in found.left_out:
        yield f"not compared: {plain(one['path'])}: {plain(one['why'])}"
    if found.is_cut:
        yield "the diff is too long: it was cut"
    if found.more_files:
        yield f"{found.more_files} more files"


def remove(call: Invocation, *, instances: list[str]) -> Shown[RemovedWorktree | list[RemovedWorktree]]:
    """Remove worktrees in which nothing would be lost, and their branches if git calls them merged.

    If work is uncommitted or unmerged, this is refused, with a hint on how to merge it; no option overrides that.
    Commits in a submodule are kept in your repository's own submodule, or else in a file. Files that git ignores are
    removed with the folder. `changes.patch` is kept.
    """
    task = call.task()
    done: list[RemovedWorktree] = []
    problem = None
    for instance in instances:
        try:
            done.append(remove_worktree(task, instance))
        except AgentctlError as error:
            if len(instances) == 1:
                raise
            problem = error
            call.note_error(error)
    lines = (line for one in done for line in _removed(one))
    code = ExitCode.DONE if problem is None else problem.exit_code
    return Shown(done if len(instances) > 1 else done[0], lines, code=code)


def _removed(one: RemovedWorktree) -> Iterator[str]:
    branch = f"its branch {one['branch']} {'too' if one['branchDeleted'] else 'is kept'}"
    yield f"removed {plain(one['path'])}, {branch}"
    for within in one["submodules"]:
        if "refs" in within:
            place = f"{plain(within['repository'])} as {', '.join(map(plain, within['refs']))}"
        else:
            place = plain(within["bundle"])
        yield f"kept {held_in_words(within['commits'])} of its submodule {plain(within['path'])} in {place}"


_LIST = Command(
    "list",
    list_worktrees_command,
    IN_TASK,
    "agentctl worktrees list\nagentctl worktrees list --json --task survey-auth",
)
_DIFF = Command(
    "diff",
    diff,
    IN_TASK,
    """
agentctl diff fix-1
agentctl diff fix-1 --since turn --stat
agentctl diff fix-1 > fix.patch
""",
    (
        INSTANCE,
        Parameter(
            "since",
            CHOICE,
            "The commit it began from, or the beginning of its last turn.",
            default=Since.BASE,
            choices=tuple(Since),
        ),
        Parameter("stat", FLAG, "Only the names of the files, with added and removed lines."),
    ),
)
COMMANDS = (
    _DIFF,
    Family(
        "worktrees",
        """List, show, compare and remove the git worktrees of workers.

Without a subcommand: `worktrees list` of the chosen task.
""",
        """
agentctl worktrees
agentctl worktrees show fix-1
agentctl worktrees remove fix-1
""",
        (
            _LIST,
            Command(
                "show",
                show_worktree_command,
                IN_TASK,
                "agentctl worktrees show fix-1\nagentctl worktrees show fix-1 --json",
                (INSTANCE,),
            ),
            _DIFF,
            Command(
                "remove",
                remove,
                IN_TASK,
                "agentctl worktrees remove fix-1\nagentctl worktrees remove fix-1 fix-2",
                (SOME_INSTANCES,),
                names_task=True,
            ),
        ),
        exits=FINDS,
        without=_LIST,
    ),
)
