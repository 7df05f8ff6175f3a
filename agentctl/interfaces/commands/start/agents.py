"""`agents list|show`: the agents that can be spawned, and where each comes from."""

from __future__ import annotations

from collections.abc import Iterator

from agentctl.domain.text.plaintext import plain
from agentctl.interfaces.commands.model.command_model import (
    AGENTS,
    FINDS,
    TEXT,
    Command,
    Family,
    Parameter,
    Shown,
    Table,
)
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import IN_ROOT
from agentctl.interfaces.words.outline import fields, outline
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.trust.definitions import list_agents, show_agent

if TYPE_CHECKING:
    from agentctl.domain.documents.agents import AgentRow, ShownAgent


def list_agents_command(call: Invocation) -> Shown[list[AgentRow]]:
    """List the agents.

    If several have the same name, the first of these wins: the root's `agents/*.md`, the project's `.claude/agents` and
    `.codex/agents`, those of your home folder, the shipped ones. `untrusted`: it comes with the project, allows
    something, and is used only if you trust it.

    On a command line:
        `agentctl trust` does that. To a pipe, one line each: name, driver, `untrusted`, source, description.
    """
    rows, warnings = list_agents(call.root_if_any())
    call.warn(warnings)
    return Shown(
        rows,
        (fields(row["name"], row["driver"], _trust(row), row["source"], row["description"]) for row in rows),
        lambda: _table(rows),
    )


def _trust(row: AgentRow) -> str | None:
    return None if row["usable"] else "untrusted"


def _table(rows: list[AgentRow]) -> Table:
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
    return Table(
        ("name", "driver", "trust", "source", "description"),
        cells,
        wide="description",
        gives_way=("source", "driver", "description"),
    )


def show_agent_command(call: Invocation, *, name: str) -> Shown[ShownAgent]:
    """Show everything that is known about one agent: its definition, its file, what it allows."""
    found = show_agent(call.root_if_any(), name)
    return Shown(found, _lines(found))


def _lines(found: ShownAgent) -> Iterator[str]:
    definition = {key: item for key, item in found["definition"].items() if item is not False and key != "instructions"}
    yield from outline({**{key: item for key, item in found.items() if key != "definition"}, **definition})
    yield ""
    yield plain(found["definition"]["instructions"], keep="\n")


_LIST = Command("list", list_agents_command, IN_ROOT, "agentctl agents list\nagentctl agents list --json", exits=())
COMMANDS = (
    Family(
        "agents",
        """List and show the agents that can be spawned.

Without a subcommand: `agents list`.
""",
        """
agentctl agents
agentctl agents show explore
agentctl agents list --json
""",
        (
            _LIST,
            Command(
                "show",
                show_agent_command,
                IN_ROOT,
                "agentctl agents show explore\nagentctl agents show explore --json",
                (
                    Parameter(
                        "name", TEXT, "The agent's name.", "NAME", is_argument=True, is_required=True, completes=AGENTS
                    ),
                ),
            ),
        ),
        exits=FINDS,
        without=_LIST,
    ),
)
