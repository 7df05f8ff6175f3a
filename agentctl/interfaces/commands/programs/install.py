"""`install`: teach an agent program to delegate, or have a root go on at each boot."""

from __future__ import annotations

import os
from enum import StrEnum

from agentctl.adapters.taskdir import Root
from agentctl.domain.text.plaintext import plain
from agentctl.errors import Argument, AtTerminal, ExitCode, Next, NotFound, Refused, UsageError, WithArguments
from agentctl.interfaces.commands.model.command_model import CHOICE, FLAG, Carried, Command, Parameter, Showing, Shown
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import IN_ROOT
from agentctl.interfaces.mcp.entry import check_mcp_library
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.install.boot import CRONTAB, boot_entry, needs_linger, remove_entry, write_entry
from agentctl.operations.install.installing import Change, carry_out_changes, plan

if TYPE_CHECKING:
    from agentctl.domain.documents.installs import ChangedFile, ShownBootEntry


class Client(StrEnum):
    """The agent programs that can be taught, and the boot of the machine."""

    CLAUDE = "claude"
    CODEX = "codex"
    GEMINI = "gemini"
    OPENCODE = "opencode"
    #: Not a program: what was lost or queued goes on after a restart of the machine.
    BOOT = "boot"


def install(
    call: Invocation,
    *,
    client: str,
    undo: bool = False,
    yes: bool = False,
    project: bool = False,
    hooks: bool = False,
    write: bool = False,
) -> Carried[list[ChangedFile] | ShownBootEntry]:
    """Teach an agent program to delegate to agentctl.

    Shows the change, asks, and writes: the MCP server with its time limits, the rule that permits it, and a skill (or
    a section of AGENTS.md) that tells a parent how to delegate. Everything else in the files stays as it is; a copy
    of the earlier content is kept beside each file.

    `boot` makes this root go on after each restart of the machine (agentctl resume --lost). It prints a unit for your
    own systemd, or, where there is none, a line for your crontab; --write writes it, --undo removes it.
    """
    if client == Client.BOOT:
        if project or hooks or (write and undo):
            raise UsageError(
                WithArguments("boot takes one of ", Argument("write"), " and ", Argument("undo")),
                hint=Next("help", "install"),
            )
        return _boot(call, write=write, undo=undo)
    if write:
        raise UsageError(
            WithArguments(Argument("write"), " is for boot"),
            hint=AtTerminal("--yes makes the change without a question"),
        )
    if not undo:
        check_mcp_library()
    folder = os.getcwd() if project else None
    changes = plan(client, undo=undo, project=folder, hooks=hooks, environ=os.environ)
    if not changes:
        call.note("there is nothing to change")
    else:
        _confirm(call, changes, yes=yes)
        carry_out_changes(changes, undo=undo)
    return Shown(
        [{"path": change.path, "removed": change.after is None} for change in changes],
        (f"{'removed' if change.after is None else 'written'}: {plain(change.path)}" for change in changes),
    )


def _boot(call: Invocation, *, write: bool, undo: bool) -> Showing[list[ChangedFile] | ShownBootEntry]:
    entry = boot_entry(_root_to_forget(call) if undo else call.root(), os.environ)
    if not (write or undo):
        yield Shown({"kind": entry.kind, "path": entry.path, "text": entry.text}, entry.text.splitlines())
        call.note(f"hint: --write puts it into {'your crontab' if entry.kind == CRONTAB else plain(entry.path)}")
        return ExitCode.DONE
    changed = write_entry(entry, os.environ) if write else remove_entry(entry, os.environ)
    if not changed:
        call.note("there is nothing to change")
    yield Shown(
        [{"path": path, "removed": undo} for path in changed],
        (f"{'removed' if undo else 'written'}: {plain(path)}" for path in changed),
    )
    if write and needs_linger(entry):
        call.note("hint: your systemd starts at your first login; loginctl enable-linger has it start at boot")
    return ExitCode.DONE


def _root_to_forget(call: Invocation) -> Root:
    """Return the root, or the place where it was: its entry outlives it."""
    try:
        return call.root()
    except NotFound:
        if call.root_named is None:
            raise
        return Root(os.path.abspath(call.root_named))


def _confirm(call: Invocation, changes: list[Change], *, yes: bool) -> None:
    for change in changes:
        for line in change.diff().splitlines():
            call.note(plain(line, keep=chr(9)))
    if yes:
        return
    if not call.is_terminal("stdin"):
        raise Refused(
            "nothing was changed: there is nobody to ask", hint=AtTerminal("--yes makes the change shown above")
        )
    if not call.is_confirmed("Make this change?"):
        raise Refused("nothing was changed", hint=AtTerminal("--yes makes the change shown above"))


COMMANDS = (
    Command(
        "install",
        install,
        IN_ROOT,
        """
agentctl install claude
agentctl install claude --project --hooks
agentctl install claude --undo
agentctl install boot
agentctl install boot --write
""",
        (
            Parameter(
                "client",
                CHOICE,
                "claude, codex, gemini, opencode; or boot.",
                "PROGRAM",
                is_argument=True,
                is_required=True,
                choices=tuple(Client),
            ),
            Parameter("undo", FLAG, "Remove exactly what was written."),
            Parameter("yes", FLAG, "Do not ask.", short="y"),
            Parameter("project", FLAG, "In the project of this folder, instead of for yourself."),
            Parameter("hooks", FLAG, "Show the program's own sub-agents too (claude): see `hook`."),
            Parameter("write", FLAG, "With `boot`: write it, instead of printing it."),
        ),
    ),
)
