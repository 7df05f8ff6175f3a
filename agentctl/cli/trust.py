"""`trust`: lets a person trust the definitions, templates, tasks and settings that come with a project."""

from typing import Annotated, Any

import typer

from agentctl.cli import options as opt
from agentctl.cli.render import fields, plain, warn
from agentctl.cli.verb import FINDS, module, verb
from agentctl.errors import UsageError
from agentctl.operations.trust.trusting import list_trust, revoke_files, trust_files

app = module()


@verb(
    app,
    "trust",
    exits=FINDS,
    examples="""
agentctl trust --list
agentctl trust .agentctl/agents/build.md
agentctl trust .agentctl/templates/survey .agentctl/tasks/build
agentctl trust .agentctl/tasks/build/task.yaml .agentctl/config.yaml
agentctl trust --revoke .agentctl/agents/build.md
""",
)
def trust(
    call: opt.InRoot,
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE]...", help="Definitions, templates, tasks, a task.yaml, a config.yaml."),
    ] = None,
    wanted: Annotated[bool, typer.Option("--list", help="Show what is trusted, and what is not yet.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="No longer trust them.")] = False,
) -> None:
    """Trust definitions, templates, tasks and settings that come with the project.

    Look at the files first: once trusted, they may do what they say. Definitions, templates and the config.yaml of the
    root (where workers run) are trusted as they are now: any change has to be trusted again. A task of somebody else,
    or from elsewhere, becomes yours, with all in it.
    Rules in a task.yaml that allow something must be trusted once they were changed by hand; those that only restrict
    need no trust. Without a FILE: the same as --list.
    To a pipe, one line each: path, `trusted` or `untrusted`, agent, what it allows, kind.
    """
    if wanted and (files or revoke):
        raise UsageError("--list goes with neither files nor --revoke")
    if revoke and not files:
        raise UsageError("--revoke needs the files", hint="agentctl trust --list shows them")
    if not files:
        rows, warnings = list_trust(call.root_if_any())
        warn(warnings)
    else:
        rows = (revoke_files if revoke else trust_files)(call.root_if_any(), files)
    notes = [] if rows else ["nothing is trusted, and nothing here needs to be"]
    call.show(rows, map(_line, rows), lambda: _print(rows), notes)


def _state(row: dict[str, Any]) -> str:
    return "trusted" if row["trusted"] else "untrusted"


def _line(row: dict[str, Any]) -> str:
    return fields(row["path"], _state(row), row["agent"], "; ".join(row["powers"]), row["kind"])


def _print(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        print(f"{_state(row)}  {plain(row['path'])}")
        for power in row["powers"]:
            print(f"    {plain(power)}")
