"""What the user of a client can choose for a session before its first prompt: agent, permissions, model."""

from __future__ import annotations

import shlex
from typing import Any

from agentctl.adapters.taskdir import Root
from agentctl.domain.states import OWN
from agentctl.domain.text.plaintext import plain
from agentctl.drivers.registry import load
from agentctl.errors import AtTerminal, Refused, UsageError
from agentctl.lean import NamedTuple
from agentctl.operations.start.permissions import given_rules
from agentctl.operations.start.requests import AgentWork
from agentctl.operations.trust.definitions import find_agent, list_agent_specs

AGENT, PERMISSIONS, MODEL = "agent", "permissions", "model"
#: As the definition and the task say.
DEFAULT = "default"
_PERMISSIONS = {
    DEFAULT: ("As defined", "What the agent's definition and the task say; without rules you are asked."),
    "ask": ("Ask", "You are asked about everything that the agent may not do by itself."),
    "allow": ("Allow", "Whatever the agent asks for is allowed."),
    "deny": ("Deny", "Whatever the agent asks for is denied."),
    OWN: (
        "Your own settings",
        "What your own settings of its program allow is done without asking; you are asked about the rest.",
    ),
}
_MOST_AGENTS, _LONGEST = 200, 300


class Choices(NamedTuple):
    """What was chosen for a session; None leaves it to the definition."""

    agent: str = "general"
    driver: str | None = None
    model: str | None = None
    permissions: str | None = None
    #: A model that was named when the server was started: it can be chosen again.
    known_model: str | None = None


def check_choices(choices: Choices, root: Root | None) -> Choices:
    """Check what was chosen on the command line, as a start would: a session would fail with its first prompt only.

    Raises:
        UsageError, NotFound: There is no such agent or driver, or the permissions are not valid.
        Refused: The agent is not trusted.
    """
    if choices.driver is not None:
        load(choices.driver)
    given_rules(AgentWork(prompt="", permissions=choices.permissions))
    return with_choice(choices, AGENT, choices.agent, root)


def config_options(choices: Choices, root: Root | None) -> list[dict[str, Any]]:
    """Return the options with their current values, as the protocol has them."""
    found = [
        _select(AGENT, "Agent", "mode", choices.agent, _agents(choices, root)),
        _select(PERMISSIONS, "Permissions", "permissions", choices.permissions or DEFAULT, _permissions(choices)),
    ]
    models = [one for one in dict.fromkeys((choices.known_model, choices.model)) if one]
    if models:
        named = [_value(DEFAULT, "Default", "The program's own choice.")] + [_value(one, one, None) for one in models]
        found.append(_select(MODEL, "Model", "model", choices.model or DEFAULT, named))
    return found


def modes(choices: Choices, root: Root | None) -> dict[str, Any]:
    """Return the agents as modes, for clients that know no options."""
    known = [{"id": one.pop("value"), **one} for one in _agents(choices, root)]
    return {"currentModeId": choices.agent, "availableModes": known}


def _agents(choices: Choices, root: Root | None) -> list[dict[str, Any]]:
    """Return the agents that may be used; the chosen one is always among them."""
    usable = [one.spec for one in list_agent_specs(root)[0] if one.usable][:_MOST_AGENTS]
    found = [_value(one.name, one.name, one.description) for one in usable]
    is_known = any(one["value"] == choices.agent for one in found)
    return found if is_known else [_value(choices.agent, choices.agent, None), *found]


def _permissions(choices: Choices) -> list[dict[str, Any]]:
    own = choices.permissions
    rules = [] if own is None or own in _PERMISSIONS else [_value(own, "Rules", "Those of --permissions.")]
    return [*rules, *(_value(value, name, help_) for value, (name, help_) in _PERMISSIONS.items())]


def _value(value: str, name: str, description: str | None) -> dict[str, Any]:
    found = {"value": value, "name": plain(name)}
    return found | ({"description": plain(description)[:_LONGEST]} if description else {})


def _select(name: str, title: str, category: str, current: str, options: list[dict[str, Any]]) -> dict[str, Any]:
    known = {"category": category} if category in ("mode", "model") else {}
    return {"id": name, "name": title, **known, "type": "select", "currentValue": current, "options": options}


def with_choice(choices: Choices, name: str, value: object, root: Root | None) -> Choices:
    """Return the choices with one of them changed.

    Raises:
        UsageError: There is no such option, or it has no such value.
        Refused: The agent is not trusted.
    """
    if not isinstance(value, str):
        raise UsageError(f"the value of {plain(name)} must be a text")
    if name == AGENT:
        agent = find_agent(root, value)
        if not agent.usable:
            source = shlex.quote(agent.spec.source)
            raise Refused(f"the agent {plain(value)} is not trusted", hint=AtTerminal(f"agentctl trust {source}"))
        return choices._replace(agent=agent.spec.name)
    for option in config_options(choices, root):
        known = [one["value"] for one in option["options"]]
        if option["id"] == name and value in known:
            wanted = None if value == DEFAULT else value
            return choices._replace(model=wanted) if name == MODEL else choices._replace(permissions=wanted)
        if option["id"] == name:
            raise UsageError(f"{plain(name)} cannot be {plain(value)}", hint=f"one of {', '.join(known)}")
    raise UsageError(f"there is no option {plain(name)}", hint=f"{AGENT}, {PERMISSIONS}")
