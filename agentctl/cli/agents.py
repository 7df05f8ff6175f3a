"""`agents list|show`: the agents that can be spawned, and whose word each is."""

import sys
from typing import Annotated, Any

import typer

from agentctl.adapters.taskdir import Root
from agentctl.cli import options as opt
from agentctl.cli.completing import complete_agents
from agentctl.cli.render import is_terminal, out, out_fields, out_json, outline, plain, warn
from agentctl.cli.verb import FINDS, family, verb
from agentctl.errors import NotFound
from agentctl.operations.trust.definitions import list_agents, show_agent
from agentctl.operations.where.locating import find_root

app = family(
    "List and show the agents that can be spawned.",
    exits=FINDS,
    examples="""
agentctl agents
agentctl agents show explore
agentctl agents list --json
""",
)


@app.callback(invoke_without_command=True)
def agents(context: typer.Context, json: opt.Json = False) -> None:
    """List and show the agents that can be spawned.

    Without a word behind it: `agents list`.
    """
    if context.invoked_subcommand is None:
        _list(None, False, json)


@verb(app, "list", examples="agentctl agents list\nagentctl agents list --json", exits=())
def list_command(root: opt.Root = None, force: opt.Force = False, json: opt.Json = False) -> None:
    """List the agents.

    Of several definitions of one name the first wins: the root's `agents/*.md`, the project's `.claude/agents` and
    `.codex/agents`, those of your home folder, the shipped ones. `untrusted`: it comes with the project, allows
    something, and waits for `agentctl trust`. To a pipe, a line each: name, driver, `untrusted`, source, description.
    """
    _list(root, force, json)


def _list(root: str | None, force: bool, json: bool) -> None:
    rows, warnings = list_agents(root_or_none(root, force))
    if json:
        out_json(rows)
    elif is_terminal(sys.stdout):
        from agentctl.cli.tables import draw

        heads = ("name", "driver", "trust", "source", "description")
        draw(heads, (_fields(row, shown=True) for row in rows), wide="description")
    else:
        for row in rows:
            out_fields(*_fields(row))
    warn(warnings)


def _fields(row: dict[str, Any], *, shown: bool = False) -> tuple[Any, ...]:
    driver, trust = row["driver"], None if row["usable"] else "untrusted"
    if not shown:
        return row["name"], driver, trust, row["source"], row["description"]
    driver = driver if row["installed"] else f"{driver or 'none'} (not installed)"
    return row["name"], driver, trust, row["origin"], row["description"]


def root_or_none(named: str | None, force: bool) -> Root | None:
    """Return the root; None where there is none, since the shipped agents need none."""
    try:
        return find_root(named, force=force)
    except NotFound:
        if named is not None:
            raise
        return None


@verb(app, "show", examples="agentctl agents show explore\nagentctl agents show explore --json")
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The agent's name.", autocompletion=complete_agents)],
    root: opt.Root = None,
    force: opt.Force = False,
    json: opt.Json = False,
) -> None:
    """Show everything that is known of one agent: its definition, its file, what it allows."""
    told = show_agent(root_or_none(root, force), name)
    if json:
        out_json(told)
        return
    definition = told.pop("definition")
    instructions = definition.pop("instructions")
    for line in outline({**told, **{key: item for key, item in definition.items() if item is not False}}):
        out(line)
    out()
    out(plain(instructions, keep="\n"))
