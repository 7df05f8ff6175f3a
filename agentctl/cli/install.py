"""`install`: teach an agent program to delegate, or have a root go on at each boot."""

import os
import sys
from enum import StrEnum
from typing import Annotated

import typer

from agentctl.adapters.taskdir import Root
from agentctl.cli import options as opt
from agentctl.cli.invocation import Invocation
from agentctl.cli.render import is_terminal, note, plain
from agentctl.cli.verb import module, verb
from agentctl.errors import ExitCode, NotFound, Refused, UsageError
from agentctl.mcp.serving import check_mcp_library
from agentctl.operations.install.boot import CRONTAB, boot_entry, needs_linger, remove_entry, write_entry
from agentctl.operations.install.installing import Change, carry_out_changes, plan

app = module()


class Client(StrEnum):
    """The agent programs that can be taught, and the boot of the machine."""

    CLAUDE = "claude"
    CODEX = "codex"
    GEMINI = "gemini"
    OPENCODE = "opencode"
    #: Not a program: what was lost or queued goes on after a restart of the machine.
    BOOT = "boot"


@verb(
    app,
    "install",
    examples="""
agentctl install claude
agentctl install claude --project --hooks
agentctl install claude --undo
agentctl install boot
agentctl install boot --write
""",
)
def install(
    call: opt.InRoot,
    client: Annotated[Client, typer.Argument(metavar="PROGRAM", help="claude, codex, gemini, opencode; or boot.")],
    undo: Annotated[bool, typer.Option("--undo", help="Remove exactly what was written.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    project: Annotated[
        bool, typer.Option("--project", help="In the project of this folder, instead of for yourself.")
    ] = False,
    hooks: Annotated[
        bool, typer.Option("--hooks", help="Show the program's own sub-agents too (claude): see `hook`.")
    ] = False,
    write: Annotated[bool, typer.Option("--write", help="Of `boot`: write what is printed otherwise.")] = False,
) -> int:
    """Teach an agent program to delegate to agentctl.

    Shows the change, asks, and writes: the MCP server with its time limits, the rule that permits it, and a skill (or
    a section of AGENTS.md) that tells a parent how to delegate. Everything else in the files stays as it is; a copy
    of the earlier content is kept beside each file.

    `boot` has this root go on after each restart of the machine (agentctl resume --lost). It prints a unit of your own
    systemd, or a line of your crontab where you have none; --write writes it, --undo removes it.
    """
    if client is Client.BOOT:
        if project or hooks or (write and undo):
            raise UsageError("boot takes one of --write and --undo", hint="agentctl install --help")
        return _boot(call, write=write, undo=undo)
    if write:
        raise UsageError("--write is for boot", hint="--yes makes the change without a question")
    if not undo:
        check_mcp_library()
    folder = os.getcwd() if project else None
    changes = plan(client.value, undo=undo, project=folder, hooks=hooks, environ=os.environ)
    if not changes:
        note("there is nothing to change")
    else:
        _confirm(changes, yes=yes)
        carry_out_changes(changes, undo=undo)
    call.show(
        [{"path": change.path, "removed": change.after is None} for change in changes],
        (f"{'removed' if change.after is None else 'written'}: {plain(change.path)}" for change in changes),
    )
    return ExitCode.DONE


def _boot(call: Invocation, *, write: bool, undo: bool) -> int:
    entry = boot_entry(_root_to_forget(call) if undo else call.root(), os.environ)
    if not (write or undo):
        call.show({"kind": entry.kind, "path": entry.path, "text": entry.text}, entry.text.splitlines())
        note(f"hint: --write puts it into {'your crontab' if entry.kind == CRONTAB else plain(entry.path)}")
        return ExitCode.DONE
    changed = write_entry(entry, os.environ) if write else remove_entry(entry, os.environ)
    if not changed:
        note("there is nothing to change")
    call.show(
        [{"path": path, "removed": undo} for path in changed],
        (f"{'removed' if undo else 'written'}: {plain(path)}" for path in changed),
    )
    if write and needs_linger(entry):
        note("hint: your systemd starts at your first login; loginctl enable-linger has it start at boot")
    return ExitCode.DONE


def _root_to_forget(call: Invocation) -> Root:
    """Return the root, or the place where it was: its entry outlives it."""
    try:
        return call.root()
    except NotFound:
        if call.root_named is None:
            raise
        return Root(os.path.abspath(call.root_named))


def _confirm(changes: list[Change], *, yes: bool) -> None:
    for change in changes:
        for line in change.diff().splitlines():
            note(plain(line, keep=chr(9)))
    if yes:
        return
    if not is_terminal(sys.stdin):
        raise Refused("nothing was changed: there is nobody to ask", hint="--yes makes the change shown above")
    typer.confirm("Make this change?", abort=True, err=True)
