"""What `agents` and `trust` show: the agents that can be spawned, and what a person has to trust."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict


class PermissionRule(TypedDict):
    """What an agent may do with a tool."""

    tool: str
    #: Which of its calls; `*` for all.
    pattern: str
    #: `allow deny ask`; for all tools also `own`.
    answer: str


class AgentDefinition(TypedDict):
    """What the definition of an agent says. What is not given is null, false or empty."""

    name: str
    description: str
    #: The driver that it demands.
    driver: str | None
    model: str | None
    #: `low medium high`.
    effort: str | None
    #: The only tools that it may use; null allows all of them.
    tools: list[str] | None
    disallowedTools: list[str]
    readOnly: bool
    maxTurns: int | None
    timeoutSeconds: float | None
    maxBudgetUsd: float | None
    permissions: list[PermissionRule]
    #: `worktree`.
    isolation: str | None
    #: The command of the driver `command`, and whether it gets its prompt on stdin.
    argv: list[str] | None
    promptOnStdin: bool
    #: What runs it: `local`, `slurm`.
    runner: str | None
    #: What it asks for where it runs on a node: `cpus memory gpus time_s partition args`, those that are given.
    resources: dict[str, Any]
    instructions: str
    #: Keys of another program's format that mean nothing here.
    ignored: list[str]
    #: The file that it was read from.
    source: str


class AgentRow(TypedDict):
    """An agent that can be spawned."""

    name: str
    description: str
    #: The file of its definition.
    source: str
    #: `project home shipped`.
    origin: str
    #: The one that would run it; null if none is installed.
    driver: str | None
    #: The driver's program is there.
    installed: bool
    #: False until it is trusted.
    usable: bool
    #: What its file allows, in words.
    powers: list[str]


class ShownAgent(AgentRow):
    """An agent, and its definition."""

    definition: AgentDefinition


class DriverRow(TypedDict):
    """A driver, and what a start may ask of it."""

    driver: str
    #: The program that it starts, as it is looked for; empty of plain models.
    program: str
    installed: bool
    #: The version with which it was tried; null if none was: it runs only where somebody names it.
    tested: str | None
    #: The options of `spawn` that it honours -> the values that are known; none: any text or number. Of permissions and
    #: models, others are taken too.
    takes: dict[str, list[str]]


class TrustRow(TypedDict):
    """Something that is trusted, or that needs trust."""

    path: str
    #: `agent template task rules settings`.
    kind: str
    #: The name that a definition gives; null for anything else, and for what is trusted but not in use here.
    agent: str | None
    trusted: bool
    #: What it allows, in words.
    powers: list[str]
