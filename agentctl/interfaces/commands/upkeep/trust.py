"""`trust`: lets a person trust the definitions, templates, tasks and settings that come with a project."""

from __future__ import annotations

from collections.abc import Iterator

from agentctl.domain.text.plaintext import plain
from agentctl.errors import Argument, AtTerminal, UsageError, WithArguments
from agentctl.interfaces.commands.model.command_model import FINDS, FLAG, TEXTS, Command, Parameter, Shown
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import IN_ROOT
from agentctl.interfaces.words.outline import fields
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.trust.trusting import list_trust, revoke_files, trust_files

if TYPE_CHECKING:
    from agentctl.domain.documents.agents import TrustRow


def trust(
    call: Invocation, *, files: list[str] | None = None, wanted: bool = False, revoke: bool = False
) -> Shown[list[TrustRow]]:
    """Trust definitions, templates, tasks and settings that come with the project.

    Look at the files first: once trusted, they may do what they say. Definitions, templates and the config.yaml of the
    root (where workers run) are trusted as they are now: any change has to be trusted again. A task of somebody else,
    or from elsewhere, becomes yours, with everything in it.
    Rules in a task.yaml that allow something must be trusted after a change by hand; those that only restrict need no
    trust. Without a FILE: the same as --list.
    To a pipe, one line each: path, `trusted` or `untrusted`, agent, what it allows, kind.
    """
    if wanted and (files or revoke):
        raise UsageError(WithArguments(Argument("list"), " goes with neither files nor ", Argument("revoke")))
    if revoke and not files:
        raise UsageError(
            WithArguments(Argument("revoke"), " needs the files"), hint=AtTerminal("agentctl trust --list shows them")
        )
    if not files:
        rows, warnings = list_trust(call.root_if_any())
        call.warn(warnings)
    else:
        rows = (revoke_files if revoke else trust_files)(call.root_if_any(), files)
    notes = [] if rows else ["nothing is trusted, and nothing here needs to be"]
    return Shown(rows, map(_line, rows), lambda: _outline(rows), notes)


def _state(row: TrustRow) -> str:
    return "trusted" if row["trusted"] else "untrusted"


def _line(row: TrustRow) -> str:
    return fields(row["path"], _state(row), row["agent"], "; ".join(row["powers"]), row["kind"])


def _outline(rows: list[TrustRow]) -> Iterator[str]:
    for row in rows:
        yield f"{_state(row)}  {plain(row['path'])}"
        for power in row["powers"]:
            yield f"    {plain(power)}"


COMMANDS = (
    Command(
        "trust",
        trust,
        IN_ROOT,
        """
agentctl trust --list
agentctl trust .agentctl/agents/build.md
agentctl trust .agentctl/templates/survey .agentctl/tasks/build
agentctl trust .agentctl/tasks/build/task.yaml .agentctl/config.yaml
agentctl trust --revoke .agentctl/agents/build.md
""",
        (
            Parameter(
                "files",
                TEXTS,
                "Definitions, templates, tasks, a task.yaml, a config.yaml.",
                "[FILE]...",
                is_argument=True,
            ),
            Parameter("wanted", FLAG, "Show what is trusted, and what is not yet.", typed="list"),
            Parameter("revoke", FLAG, "No longer trust them."),
        ),
        exits=FINDS,
    ),
)
