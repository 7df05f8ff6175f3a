"""What a start may ask of each driver: the options that it honours, and the values that are known of them."""

from __future__ import annotations

from agentctl.domain.agent.agentspec import EFFORTS
from agentctl.domain.agent.driver_names import PLAIN
from agentctl.domain.agent.permissions import POLICIES
from agentctl.drivers.registry import AGENT_DRIVERS, load, program_of
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.where.model_providers import provider_rows

if TYPE_CHECKING:
    from agentctl.domain.documents.agents import DriverRow

#: A key of a definition -> the option of a start, and the values that it takes; none: any text or number.
_OPTIONS = {
    "effort": ("effort", EFFORTS), "permissions": ("permissions", POLICIES), "model": ("model", ()),
    "maxTurns": ("max_turns", ()), "maxBudgetUsd": ("max_budget_usd", ()), "keep": ("keep", ()),
}  # fmt: skip


def driver_choices() -> list[DriverRow]:
    """Return the drivers of agent programs, in order of preference.

    Raises:
        UsageError: A person's own file of programs or of providers is not valid.
    """
    return [_choices(name) for name in AGENT_DRIVERS]


def _choices(name: str) -> DriverRow:
    driver = load(name)
    honoured = [named for key, named in _OPTIONS.items() if key in driver.honours]
    takes = {option: list(values) for option, values in honoured}
    if name == PLAIN:
        takes["model"] = _plain_models()
    return {
        "driver": name, "program": driver.program, "installed": program_of(driver) is not None,
        "tested": driver.tested or None, "takes": takes,
    }  # fmt: skip


def _plain_models() -> list[str]:
    """Return the models that a person's rows name; the providers may have others."""
    rows = provider_rows()
    named = [f"{name}/{model}" for name, row in rows.providers.items() for model in row.get("models", {})]
    return list(dict.fromkeys([rows.default_model, *named] if rows.default_model else named))
