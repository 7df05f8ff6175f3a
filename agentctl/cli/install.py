"""`install`: an agent program is taught to delegate."""

import os
import sys
from enum import StrEnum
from typing import Annotated

import typer

from agentctl.cli import options as opt
from agentctl.cli.render import is_terminal, note, out, out_json, plain
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
    client: Annotated[Client, typer.Argument(metavar="PROGRAM", help="claude, codex, gemini or opencode.")],
    undo: Annotated[bool, typer.Option("--undo", help="Take exactly that out again.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    project: Annotated[
        bool, typer.Option("--project", help="In the project of this folder, instead of for yourself.")
    ] = False,
    hooks: Annotated[
        bool, typer.Option("--hooks", help="Show the program's own sub-agents too (claude): see `hook`.")
    ] = False,
    json: opt.Json = False,
) -> int:
    """Teach an agent program to delegate to agentctl.

    Shows the change, asks, and writes: the MCP server with its time limits, the rule that permits it, and a skill (or
    a section of AGENTS.md) that tells a parent how to delegate. Everything else in the files stays as it is; what was
    there before lies beside each file.
    """
    if not undo:
        check_library()
    folder = os.getcwd() if project else None
    changes = plan(client.value, undo=undo, project=folder, hooks=hooks, environ=os.environ)
    if not changes:
        note("nothing is to be changed")
    else:
        _confirm(changes, yes=yes)
        carry_out(changes, undo=undo)
    if json:
        out_json([{"path": change.path, "removed": change.after is None} for change in changes])
    else:
        for change in changes:
            out(f"{'removed' if change.after is None else 'written'}: {plain(change.path)}")
    return ExitCode.DONE


def _confirm(changes: list[Change], *, yes: bool) -> None:
    for change in changes:
        for line in change.diff().splitlines():
            note(plain(line, keep=chr(9)))
    if yes:
        return
    if not is_terminal(sys.stdin):
        raise Refused("nothing was changed: there is nobody to ask", hint="--yes makes the change that is shown above")
    typer.confirm("Make this change?", abort=True, err=True)
