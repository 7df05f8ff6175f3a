"""`worktrees list|show|remove`: the git worktrees of workers, and what was changed in them."""

from collections.abc import Iterator
from typing import Any

import typer

from agentctl.cli import options as opt
from agentctl.cli.invocation import Invocation
from agentctl.cli.render import fields, note, outline, plain
from agentctl.cli.verb import FINDS, family, verb
from agentctl.errors import AgentctlError, ExitCode
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

    Without a subcommand: `worktrees list` of the chosen task.
    """
    if context.invoked_subcommand is None:
        list_command(Invocation(json=json))


@verb(app, "list", examples="agentctl worktrees list\nagentctl worktrees list --json --task survey-auth")
def list_command(call: opt.InTask) -> None:
    """List the worktrees of a task, and whether they contain work that is nowhere else.

    To a pipe, one line each: instance, state, uncommitted files, unmerged commits, files changed, branch, path.
    State: in-use, clean (can be removed), uncommitted, unmerged, removed, gone (not by agentctl), unknown.
    """
    rows = list_worktrees(call.task_to_show())
    columns = [[row[key] for key in ("agentInstance", *_HEADS[1:])] for row in rows]
    call.show(rows, (fields(*row) for row in columns), lambda: _draw(columns), _overlaps(rows))


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
def show(call: opt.InTask, instance: opt.Instance) -> None:
    """Show a worktree: its branch, the files that were changed in it, its patch, and who touched the same files."""
    worktree = show_worktree(call.task_to_show(), instance)
    call.show(worktree, outline(worktree))


@verb(app, "remove", examples="agentctl worktrees remove fix-1\nagentctl worktrees remove fix-1 fix-2")
def remove(call: opt.InTask, instances: opt.Instances) -> int:
    """Remove worktrees in which nothing would be lost, and their branches if git calls them merged.

    If work is uncommitted or unmerged, this is refused, with a hint on how to merge it; no option overrides that. Files
    that git ignores are removed with the folder. `changes.patch` is kept.
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
    call.show(done if len(instances) > 1 else done[0], map(_removed, done))
    return ExitCode.DONE if problem is None else problem.exit_code


def _removed(one: dict[str, Any]) -> str:
    branch = f"its branch {one['branch']} {'too' if one['branchDeleted'] else 'is kept'}"
    return f"removed {plain(one['path'])}, {branch}"
