"""`agents list|show`: the agents that can be spawned, and where each comes from."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from agentctl.cli import options as opt
from agentctl.cli.completing import complete_agents
from agentctl.cli.invocation import Invocation
from agentctl.cli.render import fields, outline, plain, warn
from agentctl.cli.verb import FINDS, family, verb
from agentctl.operations.trust.definitions import list_agents, show_agent

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

    Without a subcommand: `agents list`.
    """
    if context.invoked_subcommand is None:
        list_agents_command(Invocation(json=json))


@verb(app, "list", examples="agentctl agents list\nagentctl agents list --json", exits=())
def list_agents_command(call: opt.InRoot) -> None:
    """List the agents.

    If several have the same name, the first of these wins: the root's `agents/*.md`, the project's `.claude/agents` and
    `.codex/agents`, those of your home folder, the shipped ones. `untrusted`: it comes with the project, allows
    something, and needs `agentctl trust`. To a pipe, one line each: name, driver, `untrusted`, source, description.
    """
    rows, warnings = list_agents(call.root_if_any())
    call.show(
        rows,
        (fields(row["name"], row["driver"], _trust(row), row["source"], row["description"]) for row in rows),
        lambda: _draw(rows),
    )
    warn(warnings)


def _trust(row: dict[str, Any]) -> str | None:
    return None if row["usable"] else "untrusted"


def _draw(rows: list[dict[str, Any]]) -> None:
    from agentctl.cli.tables import draw

    cells = [
        (
            row["name"],
            row["driver"] if row["installed"] else f"{row['driver'] or 'none'} (not installed)",
            _trust(row),
            row["origin"],
            row["description"],
        )
        for row in rows
    ]
    draw(("name", "driver", "trust", "source", "description"), cells, wide="description")


@verb(app, "show", examples="agentctl agents show explore\nagentctl agents show explore --json")
def show_agent_command(
    call: opt.InRoot,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The agent's name.", autocompletion=complete_agents)],
) -> None:
    """Show everything that is known about one agent: its definition, its file, what it allows."""
    found = show_agent(call.root_if_any(), name)
    call.show(found, _lines(found))


def _lines(found: dict[str, Any]) -> Iterator[str]:
    definition = {key: item for key, item in found["definition"].items() if item is not False}
    instructions = definition.pop("instructions")
    yield from outline({**{key: item for key, item in found.items() if key != "definition"}, **definition})
    yield ""
    yield plain(instructions, keep="\n")
