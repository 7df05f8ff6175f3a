"""The provider and the model of an agent that has no program of a vendor."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from agentctl.adapters.files import read_known
from agentctl.domain.agent.agentspec import AgentSpec
from agentctl.drivers.dialogue import Driver
from agentctl.drivers.registry import AGENT_DRIVERS, load
from agentctl.errors import Refused
from agentctl.operations.start.requests import AgentWork
from agentctl.operations.where.lineage import true_caller


def model_of_caller() -> str | None:
    """Return the plain model of the agent that starts this one; None where it has none.

    What it starts goes to the same model unless another driver is named: what was kept to one provider stays there.
    """
    caller = true_caller()
    order = read_known(caller.worker.spec).get("order") if caller is not None else None
    provider = order.get("provider") if isinstance(order, dict) else None
    return provider_and_model(provider) if isinstance(provider, dict) else None


def provider_and_model(provider: Mapping[str, Any]) -> str | None:
    """Return `PROVIDER/MODEL`; None where there is none."""
    return f"{provider.get('name')}/{provider.get('model')}" if provider else None


def provider_for(
    driver: Driver, work: AgentWork, spec: AgentSpec, environ: Mapping[bytes, bytes], of_caller: str | None
) -> dict[str, Any]:
    """Return the provider of an order, resolved: by the model of the call, the definition, the caller, or the person.

    Raises:
        Refused: No model is named; there is no such provider, or no key for it; or a limit of money cannot be kept.
    """
    from agentctl.drivers.llm.providers import HINT, has_prices, missing_key, resolved  # They parse addresses.
    from agentctl.operations.where.model_providers import provider_rows

    rows, model = provider_rows(), work.model or spec.model or of_caller
    if model is None and rows.default_model is None and not (work.driver or spec.driver):
        programs = ", ".join(one.program for one in map(load, AGENT_DRIVERS) if not one.is_ours)
        first = load(next(iter(AGENT_DRIVERS)))
        raise Refused(f"no agent program is installed ({programs}), and no model is named", hint=(first.install, *HINT))
    texts = {os.fsdecode(name): os.fsdecode(value) for name, value in environ.items()}
    try:
        provider = resolved(rows, model, texts)
    except Refused as error:
        if work.model or not spec.model:
            raise
        raise Refused(f"the agent {spec.name} names the model {model}: {error.message}", hint=error.steps) from error
    if variable := missing_key(provider, texts):
        raise Refused(
            f"there is no key for {provider['name']}: {variable} is not set here",
            hint=f"set {variable} where you spawn it, or give the provider a keyCommand in"
            " ~/.config/agentctl/providers.yaml",
        )
    if (work.max_budget_usd or spec.max_budget_usd) and not has_prices(provider):
        raise Refused(
            f"the driver {driver.name} cannot honour maxBudgetUsd: no price is known for"
            f" {provider_and_model(provider)}",
            hint="give the model prices in ~/.config/agentctl/providers.yaml, or leave the limit out",
        )
    return provider
