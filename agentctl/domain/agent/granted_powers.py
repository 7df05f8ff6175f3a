"""The powers that a definition grants, because of which a project's definition may need a person's trust.

A cloned repository brings files that its authors wrote. Restrictions in them apply at once; powers only after a person
has looked at them.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile

from agentctl.domain.agent.agentspec import AgentSpec
from agentctl.domain.agent.permissions import is_allowing
from agentctl.domain.names import camel
from agentctl.domain.states import OWN

#: Keys of other formats that name programs to run. They are ignored here, but they show an intent.
_PROGRAMS = frozenset({"hooks", "mcpServers", "mcp_servers"})
_LIMITS = ("max_turns", "timeout_seconds", "max_budget_usd")


def powers(spec: AgentSpec, hidden: AgentSpec | None) -> list[str]:
    """Return in words what needs trust: what a definition allows, and where it is looser than the one that it hides.

    Args:
        hidden: The person's own or the shipped definition of the same name, whose place it takes.
    """
    found = [_power(rule) for rule in spec.permissions if is_allowing(rule)]
    if spec.argv:
        found.append(f"argv runs {' '.join(spec.argv)}")
    found += [f"{key} names programs" for key in spec.ignored if key in _PROGRAMS]
    return found + (_looser(spec, hidden) if hidden is not None else [])


def _power(rule: Mapping[str, str]) -> str:
    if rule["answer"] == OWN:
        return f"permissions {OWN}: what your own settings of its program allow is done without asking"
    about = rule["tool"] if rule["pattern"] == "*" else f"{rule['tool']} {rule['pattern']}"
    return f"permissions allow {about}"


def _looser(spec: AgentSpec, hidden: AgentSpec) -> list[str]:
    of = f"unlike the {spec.name} that it hides"
    found = []
    if hidden.read_only and not spec.read_only:
        found.append(f"it is not readOnly, {of}")
    if hidden.tools is not None and (spec.tools is None or not set(spec.tools) <= set(hidden.tools)):
        found.append(f"it has more tools, {of}")
    denied = _denials(spec, leading=True)
    if ("*", "*") not in denied and not _denials(hidden, leading=False) <= denied:
        found.append(f"it denies less, {of}")
    if hidden.isolation is not None and spec.isolation is None:
        found.append(f"it has no isolation, {of}")
    # Another driver or model may send the same work to somebody else.
    found += [
        f"it names another {key}, {of}" for key in ("driver", "model") if getattr(spec, key) != getattr(hidden, key)
    ]
    for name in _LIMITS:
        limit, own = getattr(hidden, name), getattr(spec, name)
        if limit is not None and (own is None or own > limit):
            found.append(f"its {camel(name)} is higher, {of}")
    return found


def _denials(spec: AgentSpec, *, leading: bool) -> set[tuple[str, str]]:
    """Return what a definition denies; `leading`: only the rules before the first that does not deny."""
    rules = takewhile(lambda rule: rule["answer"] == "deny", spec.rules) if leading else spec.rules
    return {(rule["tool"], rule["pattern"]) for rule in rules if rule["answer"] == "deny"}
