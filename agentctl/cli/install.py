"""`install`: teach an agent program to delegate."""

import os
import sys
from enum import StrEnum
from typing import Annotated

import typer

from agentctl.cli import options as opt
from agentctl.cli.render import is_terminal, note, plain
from agentctl.cli.verb import module, verb
from agentctl.errors import ExitCode, Refused
from agentctl.mcp.serving import check_library
from agentctl.operations.install.installing import Change, carry_out, plan

app = module()


class Client(StrEnum):
    """The agent programs that can be taught."""

    CLAUDE = "claude"
    CODEX = "codex"
    GEMINI = "gemini"
    OPENCODE = "opencode"


@verb(
    app,
    "install",
    examples="""
agentctl install claude
agentctl install codex --yes
agentctl install claude --project --hooks
agentctl install claude --undo
""",
)
def install(
    call: opt.Anywhere,
    client: Annotated[Client, typer.Argument(metavar="PROGRAM", help="claude, codex, gemini or opencode.")],
    undo: Annotated[bool, typer.Option("--undo", help="Remove exactly what was written.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    project: Annotated[
        bool, typer.Option("--project", help="In the project of this folder, instead of for yourself.")
    ] = False,
    hooks: Annotated[
        bool, typer.Option("--hooks", help="Show the program's own sub-agents too (claude): see `hook`.")
    ] = False,
) -> int:
    """Teach an agent program to delegate to agentctl.

    Shows the change, asks, and writes: the MCP server with its time limits, the rule that permits it, and a skill (or
    a section of AGENTS.md) that tells a parent how to delegate. Everything else in the files stays as it is; a copy
    of the earlier content is kept beside each file.
    """
    if not undo:
        check_library()
    folder = os.getcwd() if project else None
    changes = plan(client.value, undo=undo, project=folder, hooks=hooks, environ=os.environ)
    if not changes:
        note("there is nothing to change")
    else:
        _confirm(changes, yes=yes)
        carry_out(changes, undo=undo)
    call.show(
        [{"path": change.path, "removed": change.after is None} for change in changes],
        (f"{'removed' if change.after is None else 'written'}: {plain(change.path)}" for change in changes),
    )
    return ExitCode.DONE


def _confirm(changes: list[Change], *, yes: bool) -> None:
    for change in changes:
        for line in change.diff().splitlines():
            note(plain(line, keep=chr(9)))
    if yes:
        return
    if not is_terminal(sys.stdin):
        raise Refused("nothing was changed: there is nobody to ask", hint="--yes makes the change shown above")
    typer.confirm("Make this change?", abort=True, err=True)
