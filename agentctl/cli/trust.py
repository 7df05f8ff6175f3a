"""`trust`: a person's word for what comes with a project."""

import sys
from typing import Annotated, Any

import typer

from agentctl.cli import options as opt
from agentctl.cli.agents import root_or_none
from agentctl.cli.render import is_terminal, note, out, out_fields, out_json, plain, warn
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
agentctl trust .agentctl/tasks/build/task.yaml
agentctl trust --revoke .agentctl/agents/build.md
""",
)
def trust(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="[FILE]...", help="Definitions, templates, tasks, a task.yaml.")
    ] = None,
    wanted: Annotated[bool, typer.Option("--list", help="Show what is trusted, and what waits for it.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Trust them no more.")] = False,
    root: opt.Root = None,
    force: opt.Force = False,
    json: opt.Json = False,
) -> None:
    """Let what comes with the project do what its files say.

    Look at it first. A definition of an agent and a template are trusted as they are now: any change needs a new word.
    A task that was made elsewhere, or by somebody else, is yours from then on, with all that lies in it. Rules in a
    task.yaml that allow something need your word when they were changed by hand. What only restricts needs none.
    Without a FILE: as with --list. To a pipe, a line each: path, `trusted` or `untrusted`, agent, what it allows, kind.
    """
    if wanted and (files or revoke):
        raise UsageError("--list goes with neither files nor --revoke")
    if revoke and not files:
        raise UsageError("--revoke needs the files", hint="agentctl trust --list shows them")
    if not files:
        rows, warnings = list_trust(root_or_none(root, force))
        warn(warnings)
    else:
        rows = (
            revoke_files(root_or_none(root, force), files) if revoke else trust_files(root_or_none(root, force), files)
        )
    if json:
        out_json(rows)
    else:
        _print(rows)


def _print(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        state = "trusted" if row["trusted"] else "untrusted"
        if not is_terminal(sys.stdout):
            out_fields(row["path"], state, row["agent"], "; ".join(row["powers"]), row["kind"])
            continue
        out(f"{state}  {plain(row['path'])}")
        for power in row["powers"]:
            out(f"    {plain(power)}")
    if not rows:
        note("nothing is trusted, and nothing here needs to be")
