"""`worktrees list|show|diff|remove`: the git worktrees of workers, and what was changed in them."""

import os
import sys
import tempfile
from collections.abc import Iterator
from typing import IO, Annotated, Any

import typer

from agentctl.cli import options as opt
from agentctl.cli.invocation import Invocation
from agentctl.cli.render import fields, is_terminal, note, outline, plain
from agentctl.cli.verb import FINDS, family, verb
from agentctl.cli.worktree_notes import held_in_words, worktree_notes
from agentctl.errors import AgentctlError, ExitCode
from agentctl.operations.worktree.changes import list_worktrees, show_worktree
from agentctl.operations.worktree.diff import Since, WorktreeDiff, make_diff
from agentctl.operations.worktree.removing import remove_worktree

app = family(
    "List, show, compare and remove the git worktrees of workers.",
    exits=FINDS,
    examples="""
agentctl worktrees
agentctl worktrees show fix-1
agentctl worktrees diff fix-1
agentctl worktrees remove fix-1
""",
)
_HEADS = ("instance", "state", "uncommitted", "unmerged", "files", "branch", "path")


@app.callback(invoke_without_command=True)
def worktrees(context: typer.Context, json: opt.Json = False) -> None:
    """List, show, compare and remove the git worktrees of workers.

    Without a subcommand: `worktrees list` of the chosen task.
    """
    if context.invoked_subcommand is None:
        list_worktrees_command(Invocation(json=json))


@verb(app, "list", examples="agentctl worktrees list\nagentctl worktrees list --json --task survey-auth")
def list_worktrees_command(call: opt.InTask) -> None:
    """List the worktrees of a task, and whether they contain work that is nowhere else.

    To a pipe, one line each: instance, state, uncommitted files, unmerged commits, files changed, branch, path.
    State: in-use, clean (can be removed), uncommitted, unmerged, removed, gone (not by agentctl), unknown.
    """
    rows = list_worktrees(call.task_to_show())
    columns = [[row[key] for key in ("agentInstance", *_HEADS[1:])] for row in rows]
    call.show(rows, (fields(*row) for row in columns), lambda: _draw(columns), [*_overlaps(rows), *_within(rows)])


def _within(rows: list[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        for one in row["submodules"]:
            held = held_in_words(one["unmerged"], one["uncommitted"])
            yield f"{row['agentInstance']}: its submodule {plain(one['path'])} has {held} that are nowhere else"


def _overlaps(rows: list[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        for overlap in row["overlaps"]:
            if overlap["instance"] < row["agentInstance"]:
                continue  # Noted with the other one.
            files = ", ".join(overlap["files"][:5]) + (", ..." if len(overlap["files"]) > 5 else "")
            yield f"{row['agentInstance']} and {overlap['instance']} touched the same: {plain(files)}"


def _draw(columns: list[list[Any]]) -> None:
    if not columns:
        print("no worker of this task has a worktree")
        return
    from agentctl.cli.tables import draw

    draw(_HEADS, columns, wide="path")


@verb(app, "show", examples="agentctl worktrees show fix-1\nagentctl worktrees show fix-1 --json")
def show_worktree_command(call: opt.InTask, instance: opt.Instance) -> None:
    """Show a worktree: its branch, the files that were changed in it, its patch, and who touched the same files."""
    worktree = show_worktree(call.task_to_show(), instance)
    call.show(worktree, outline(worktree), notes=worktree_notes(worktree))


@verb(
    app,
    "diff",
    examples="""
agentctl worktrees diff fix-1
agentctl worktrees diff fix-1 --since turn --stat
agentctl worktrees diff fix-1 > fix.patch
""",
)
def diff(
    call: opt.InTask,
    instance: opt.Instance,
    since: Annotated[
        Since, typer.Option("--since", help="The commit it began from, or the beginning of its last turn.")
    ] = Since.BASE,
    stat: Annotated[
        bool, typer.Option("--stat", help="Only the names of the files, with added and removed lines.")
    ] = False,
) -> None:
    """Show what a worker has changed in its worktree, also while it works: commits, changes and new files.

    On a terminal control characters are shown, not obeyed; to a pipe every byte is passed unchanged. With --stat, one
    line for each file: added lines, removed lines (- where it is not text), what was done to it, its path. Of a worker
    that has ended: what it had changed by then.
    """
    task = call.task_to_show()
    with tempfile.TemporaryFile() as text:
        found = make_diff(task, instance, since, text)
        text.seek(0)
        if call.json:
            call.show(_diff_as_json(instance, found, None if stat or found.since is None else text), ())
        elif stat or found.since is None:
            call.show(None, _stat(found), notes=_missing(found))
        else:
            _print_text(text)
            call.show(None, (), notes=_missing(found))


def _diff_as_json(instance: str, found: WorktreeDiff, text: IO[bytes] | None) -> dict[str, Any]:
    files = [
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


def _print_text(text: IO[bytes]) -> None:
    """Print a diff; git's own names in it are quoted, but not the content of the files."""
    if is_terminal(sys.stdout):
        for line in text:
            sys.stdout.write(plain(line.decode(errors="backslashreplace"), keep="\n\t"))
    else:
        for piece in iter(lambda: text.read(1 << 16), b""):
            sys.stdout.buffer.write(piece)


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


@verb(app, "remove", examples="agentctl worktrees remove fix-1\nagentctl worktrees remove fix-1 fix-2")
def remove(call: opt.InTask, instances: opt.Instances) -> int:
    """Remove worktrees in which nothing would be lost, and their branches if git calls them merged.

    If work is uncommitted or unmerged, this is refused, with a hint on how to merge it; no option overrides that.
    Commits in a submodule are kept in your repository's own submodule, or else in a file. Files that git ignores are
    removed with the folder. `changes.patch` is kept.
    """
    task = call.task()
    done, problem = [], None
    for instance in instances:
        try:
            done.append(remove_worktree(task, instance))
        except AgentctlError as error:
            if len(instances) == 1:
                raise
            problem = error
            note(f"error: {plain(error.message)}")
            note(f"hint: {plain(error.hint)}" if error.hint else "")
    call.show(done if len(instances) > 1 else done[0], (line for one in done for line in _removed(one)))
    return ExitCode.DONE if problem is None else problem.exit_code


def _removed(one: dict[str, Any]) -> Iterator[str]:
    branch = f"its branch {one['branch']} {'too' if one['branchDeleted'] else 'is kept'}"
    yield f"removed {plain(one['path'])}, {branch}"
    for within in one["submodules"]:
        if "refs" in within:
            place = f"{plain(within['repository'])} as {', '.join(map(plain, within['refs']))}"
        else:
            place = plain(within["bundle"])
        yield f"kept {held_in_words(within['commits'])} of its submodule {plain(within['path'])} in {place}"
