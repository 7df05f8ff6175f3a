"""`worktrees list|show|remove`: the git worktrees of workers, and what was changed in them."""

import sys
from typing import Any

import typer

from agentctl.cli import options as opt
from agentctl.cli.render import is_terminal, note, note_foreign, out, out_fields, out_json, outline, plain
from agentctl.cli.verb import FINDS, family, verb
from agentctl.errors import AgentctlError, ExitCode
from agentctl.operations.where.locating import find_task
from agentctl.operations.worktree.changes import list_worktrees, remove_worktree, show_worktree

app = family(
    "List, show and remove the git worktrees of workers.",
    exits=FINDS,
    examples="""
agentctl worktrees
agentctl worktrees show fix-1
agentctl worktrees remove fix-1
""",
)
_HEADS = ("instance", "state", "uncommitted", "unmerged", "files", "branch", "path")


@app.callback(invoke_without_command=True)
def worktrees(context: typer.Context, json: opt.Json = False) -> None:
    """List, show and remove the git worktrees of workers.

    Without a word behind it: `worktrees list` of the task that is chosen.
    """
    if context.invoked_subcommand is None:
        _list(None, None, False, json)


@verb(app, "list", examples="agentctl worktrees list\nagentctl worktrees list --json --task survey-auth")
def list_command(
    task: opt.Task = None, root: opt.Root = None, force: opt.Force = False, json: opt.Json = False
) -> None:
    """List the worktrees of a task, and whether anything in them is nowhere else.

    To a pipe, a line each: instance, state, uncommitted files, unmerged commits, files changed, branch, path.
    State: in-use, clean (can be removed), uncommitted, unmerged, removed, gone (not by agentctl), unknown.
    """
    _list(task, root, force, json)


def _list(task: str | None, root: str | None, force: bool, json: bool) -> None:
    rows = list_worktrees(note_foreign(find_task(task, root=root, force=force)))
    if json:
        out_json(rows)
        return
    fields = [_fields(row) for row in rows]
    if not is_terminal(sys.stdout):
        for line in fields:
            out_fields(*line)
    elif rows:
        from agentctl.cli.tables import draw

        draw(_HEADS, fields, wide="path")
    else:
        out("no worker of this task has a worktree")
    for row in rows:
        for overlap in row["overlaps"]:
            if overlap["instance"] < row["agentInstance"]:
                continue  # Told with the other one.
            files = ", ".join(overlap["files"][:5]) + (", ..." if len(overlap["files"]) > 5 else "")
            note(f"{row['agentInstance']} and {overlap['instance']} touched the same: {plain(files)}")


def _fields(row: dict[str, Any]) -> tuple[Any, ...]:
    keys = ("agentInstance", "state", "uncommitted", "unmerged", "files", "branch", "path")
    return tuple(row[key] for key in keys)


@verb(app, "show", examples="agentctl worktrees show fix-1\nagentctl worktrees show fix-1 --json")
def show(
    instance: opt.Instance,
    task: opt.Task = None,
    root: opt.Root = None,
    force: opt.Force = False,
    json: opt.Json = False,
) -> None:
    """Show a worktree: its branch, the files that were changed in it, its patch, and who touched the same files."""
    told = show_worktree(note_foreign(find_task(task, root=root, force=force)), instance)
    if json:
        out_json(told)
        return
    for line in outline(told):
        out(line)


@verb(app, "remove", examples="agentctl worktrees remove fix-1\nagentctl worktrees remove fix-1 fix-2")
def remove(
    instances: opt.Instances,
    task: opt.Task = None,
    root: opt.Root = None,
    force: opt.Force = False,
    json: opt.Json = False,
) -> int:
    """Remove worktrees in which nothing would be lost, and their branches where git calls them merged.

    Uncommitted or unmerged work is refused, and it is said how to merge it; no option removes it. Files that git
    ignores go with the folder. `changes.patch` is kept.
    """
    place = find_task(task, root=root, force=force)
    done, problem = [], None
    for instance in instances:
        try:
            done.append(remove_worktree(place, instance))
        except AgentctlError as error:
            if len(instances) == 1:
                raise
            problem = error
            note(f"error: {plain(error.message)}")
            note(f"hint: {plain(error.hint)}" if error.hint else "")
    if json:
        out_json(done if len(instances) > 1 else done[0])
    else:
        for one in done:
            out(_removed(one))
    return ExitCode.DONE if problem is None else problem.exit_code


def _removed(one: dict[str, Any]) -> str:
    branch = f"its branch {one['branch']} {'too' if one['branchDeleted'] else 'is kept'}"
    return f"removed {plain(one['path'])}, {branch}"
