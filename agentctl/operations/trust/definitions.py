"""Which agents there are, where each definition comes from, and which may be used."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path

from agentctl.adapters.definitions import Definition, Origin, read_all, sources
from agentctl.adapters.known import known_files
from agentctl.adapters.personal import home_folder
from agentctl.adapters.taskdir import ROOT_NAME, Root
from agentctl.adapters.trust import Trusted, is_trusted, read_trusted, trust_file
from agentctl.domain.agent.agentspec import AgentSpec
from agentctl.domain.agent.granted_powers import powers
from agentctl.domain.names import first_of
from agentctl.errors import Next, NotFound, Refused
from agentctl.lean import TYPE_CHECKING, NamedTuple
from agentctl.operations.where.locating import working_folder
from agentctl.operations.where.model_providers import provider_rows
from agentctl.operations.where.personal_config import DRIVER_ORDER, section

if TYPE_CHECKING:
    from agentctl.domain.documents.agents import AgentRow, ShownAgent


class Agent(NamedTuple):
    """A definition, and whether it may be used."""

    spec: AgentSpec
    origin: Origin
    digest: str
    #: What it allows, so that a person must trust it; nothing for a person's own definitions.
    powers: list[str]
    #: Its file is trusted as it is, or need not be.
    usable: bool

    def to_json(self, order: Iterable[str]) -> AgentRow:
        """Return its row in `agents`; `order` is the order in which drivers are tried."""
        driver, installed = runs_with(self.spec, order)
        return {
            "name": self.spec.name,
            "description": self.spec.description,
            "source": self.spec.source,
            "origin": self.origin.value,
            "driver": driver,
            "installed": installed,
            "usable": self.usable,
            "powers": self.powers,
        }


def all_agents(root: Root | None) -> tuple[list[Agent], list[str]]:
    """Return all definitions in order of precedence, also hidden ones, and what was left out."""
    found = read_all(sources(Path(root.path) if root else None, project_of(root), os.environ), known_files(os.environ))
    trusted = read_trusted(trust_file(os.environ))
    own: dict[str, AgentSpec] = {}
    for definition in found.definitions:
        if definition.origin is not Origin.PROJECT:
            own.setdefault(definition.spec.name, definition.spec)
    return [_judged(definition, own, trusted) for definition in found.definitions], found.warnings


def _judged(definition: Definition, own: Mapping[str, AgentSpec], trusted: Trusted) -> Agent:
    spec, origin, digest = definition
    if origin is not Origin.PROJECT:
        return Agent(spec, origin, digest, powers=[], usable=True)
    gained = powers(spec, own.get(spec.name))
    return Agent(spec, origin, digest, gained, usable=not gained or is_trusted(trusted, spec.source, digest))


def list_agent_specs(root: Root | None) -> tuple[list[Agent], list[str]]:
    """Return the agents, by the first definition of each name, and what was left out."""
    found, warnings = all_agents(root)
    winners: dict[str, Agent] = {}
    for agent in found:
        winners.setdefault(agent.spec.name, agent)
    return list(winners.values()), warnings


def list_agents(root: Root | None) -> tuple[list[AgentRow], list[str]]:
    """Return a row for each agent, and what was left out."""
    agents, warnings = list_agent_specs(root)
    order = section(DRIVER_ORDER)
    return [agent.to_json(order) for agent in agents], warnings


def show_agent(root: Root | None, name: str) -> ShownAgent:
    """Return everything that is known of one agent."""
    agent = find_agent(root, name)
    return {**agent.to_json(section(DRIVER_ORDER)), "definition": agent.spec.to_json()}


#: The names that agent programs have for sub-agents of their own, and the agent of that kind here.
_ELSEWHERE = {
    "general-purpose": "general",
    "general_purpose": "general",
    "default": "general",
    "worker": "general",
    "explorer": "explore",
}


def find_agent(root: Root | None, name: str) -> Agent:
    """Return the agent of this name, even one that may not be used.

    If no definition has exactly this name, case is ignored; after that, the names of agent programs are accepted.

    Raises:
        NotFound: There is none; the hint names the nearest name, some known ones, and what was left out.
    """
    agents, warnings = list_agent_specs(root)
    by_name = {agent.spec.name: agent for agent in agents}
    folded = {key.casefold(): agent for key, agent in reversed(by_name.items())}
    wanted = name.casefold()
    found = by_name.get(name) or folded.get(wanted) or folded.get(_ELSEWHERE.get(wanted, ""))
    if found is not None:
        return found
    known = sorted(by_name)
    near = get_close_matches(name, known, n=1)
    hints = [f"did you mean {near[0]}?"] if near else []
    hints += [f"known: {first_of(known, 30)}", *warnings[:5]]
    raise NotFound(f"Unknown agent type: {name}", hint="; ".join(hints))


def find_agent_spec(root: Root | None, name: str) -> AgentSpec:
    """Return the definition by which an agent is to be run.

    Raises:
        NotFound: There is none of this name.
        Refused: It comes with the project, allows something, and is not trusted as it is.
    """
    agent = find_agent(root, name)
    if not agent.usable:
        raise Refused(
            f"the agent {name} comes with the project and is not trusted: {'; '.join(agent.powers)}",
            hint=Next("trust", shlex.quote(agent.spec.source)),
        )
    return agent.spec


def project_of(root: Root | None) -> Path | None:
    """Return the folder of the project's definitions: the nearest one above that has any, else that of the root."""
    home = os.path.realpath(home_folder(os.environ))
    marks = (ROOT_NAME, os.path.join(".claude", "agents"), os.path.join(".codex", "agents"))
    here = Path(working_folder())
    for folder in (here, *here.parents):
        if os.path.realpath(folder) == home:
            break
        if any((folder / mark).is_dir() for mark in marks):
            return folder
    return Path(root.path).parent if root else None


def runs_with(spec: AgentSpec, order: Iterable[str]) -> tuple[str | None, bool]:
    """Return the driver that would run an agent, and whether its program is installed."""
    from agentctl.drivers import registry

    if spec.argv is not None:
        return spec.driver, shutil.which(spec.argv[0]) is not None
    try:
        driver = registry.choose(spec.driver, order)
    except NotFound:
        return spec.driver, False  # a driver that this version does not know
    except Refused:
        return None, False
    if driver.is_ours and spec.driver is None and spec.model is None and provider_rows().default_model is None:
        return None, False  # Nobody has said which model.
    return driver.name, registry.program_of(driver) is not None
