"""A person's word that a definition which came with a project may do what it says."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from agentctl.adapters import trust
from agentctl.adapters.taskdir import Root
from agentctl.errors import NotFound, Refused
from agentctl.operations.agents import Agent, all_agents
from agentctl.operations.lineage import true_caller
from agentctl.operations.locating import caller


def list_trust(root: Root | None) -> tuple[list[dict[str, Any]], list[str]]:
    """Return a row for each file that needs trust here and each that is trusted, and what was left out."""
    agents, warnings = all_agents(root)
    needing = {os.path.realpath(agent.spec.source): agent for agent in agents if agent.powers}
    trusted = trust.read_trusted(trust.trust_file(os.environ))
    rows = [_row(agent) for agent in needing.values()]
    elsewhere = [path for path in trusted if path not in needing]
    return rows + [{"path": path, "agent": None, "trusted": True, "powers": []} for path in elsewhere], warnings


def trust_files(root: Root | None, files: Sequence[str]) -> list[dict[str, Any]]:
    """Trust definitions of this project as they are now; return a row for each.

    Raises:
        NotFound: A file is no definition of this project, or cannot be read as one.
        Refused: A worker asks; what its agents may do is for a person to say.
    """
    _refuse_workers()
    agents, warnings = all_agents(root)
    named = [_named(file, agents, warnings) for file in files]
    digests = {agent.spec.source: agent.digest for agent in named if agent.powers}
    if digests:
        trust.trust(trust.trust_file(os.environ), digests)
    return [_row(agent._replace(usable=True)) for agent in named]


def revoke_files(files: Sequence[str]) -> list[dict[str, Any]]:
    """Trust these files no more; they need not exist any more."""
    _refuse_workers()
    paths = [os.path.abspath(file) for file in files]
    gone = trust.revoke(trust.trust_file(os.environ), paths)
    missing = [path for path in paths if path not in gone]
    if missing:
        raise NotFound(f"{missing[0]} was not trusted", hint="agentctl trust --list shows what is")
    return [{"path": os.path.realpath(path), "agent": None, "trusted": False, "powers": []} for path in gone]


def _refuse_workers() -> None:
    found = true_caller() or caller()  # Also one that was lost: its environment is what tells of it.
    if found is not None:
        raise Refused(f"{found.instance} is a worker: whom to trust is for a person to say", hint="ask for it")


def _named(file: str, agents: Sequence[Agent], warnings: Sequence[str]) -> Agent:
    path = os.path.realpath(file)
    for agent in agents:
        if os.path.realpath(agent.spec.source) == path:
            return agent
    left_out = [line for line in warnings if line.startswith((f"{path}:", f"{os.path.abspath(file)}:"))]
    raise NotFound(f"{file} is no definition of an agent here", hint="; ".join(left_out) or "agentctl trust --list")


def _row(agent: Agent) -> dict[str, Any]:
    path = os.path.realpath(agent.spec.source)
    return {"path": path, "agent": agent.spec.name, "trusted": agent.usable, "powers": agent.powers}
