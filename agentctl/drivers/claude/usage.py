"""Adds up the tokens and US dollars that Claude Code reports over one run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agentctl.drivers.values import object_in
from agentctl.lean import NamedTuple

#: A number above this is not an amount of money.
_RICHEST = 1e12


class Tokens(NamedTuple):
    """Numbers of tokens; `input` excludes those that were read from the cache."""

    input: int = 0
    output: int = 0
    cached: int = 0

    def plus(self, other: Tokens) -> Tokens:
        """Return the sum of both."""
        return Tokens(*(one + two for one, two in zip(self, other, strict=True)))

    def beyond(self, other: Tokens) -> Tokens:
        """Return how much more this is than another, at least 0."""
        return Tokens(*(max(0, one - two) for one, two in zip(self, other, strict=True)))


def tokens_of(usage: Mapping[str, Any]) -> Tokens:
    """Return the tokens of a message or a result (`input_tokens`), or of `modelUsage` (`inputTokens`)."""
    return Tokens(
        _count(usage, "input_tokens", "inputTokens")
        + _count(usage, "cache_creation_input_tokens", "cacheCreationInputTokens"),
        _count(usage, "output_tokens", "outputTokens"),
        _count(usage, "cache_read_input_tokens", "cacheReadInputTokens"),
    )


def _count(usage: Mapping[str, Any], *names: str) -> int:
    found = [usage[name] for name in names if type(usage.get(name)) is int]
    return max(0, *found) if found else 0


class Usage(NamedTuple):
    """The usage that a result reports: tokens, and US dollars if it gives them."""

    tokens: Tokens = Tokens()
    cost_usd: float | None = None

    def plus(self, other: Usage) -> Usage:
        """Return the sum of both."""
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(self.tokens.plus(other.tokens), sum(costs) if costs else None)

    def beyond(self, other: Usage) -> Usage:
        """Return how much more this is than another, at least 0; without a cost if this has none."""
        cost = None if self.cost_usd is None else max(0.0, self.cost_usd - (other.cost_usd or 0.0))
        return Usage(self.tokens.beyond(other.tokens), cost)


def spent_of(models: Iterable[Any]) -> Usage:
    """Return the sum over the models of a `modelUsage`."""
    spent = Usage()
    for model in map(object_in, models):
        spent = spent.plus(Usage(tokens_of(model), cost_in(model.get("costUSD"))))
    return spent


def cost_in(value: Any) -> float | None:
    """Return an amount of money; None for anything else."""
    is_amount = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_amount and 0 <= value < _RICHEST else None


class Meter:
    """Adds up the usage of this process; the program's own totals go on when a session is resumed.

    Args:
        is_fresh: The session begins with this process.
    """

    def __init__(self, *, is_fresh: bool) -> None:
        self.spent = Usage()
        self._is_fresh = is_fresh
        self._total = Usage()

    def take(self, result: Mapping[str, Any]) -> Usage:
        """Add a result; return the usage since the last one, including sub-agents if the program reports them."""
        since, models = result.get("model_usage_since_last_result"), result.get("modelUsage")
        if isinstance(since, dict):
            new = spent_of(since.values())
        elif self._is_fresh and isinstance(models, dict):
            total = spent_of(models.values())
            new = total.beyond(self._total)
            self._total = total if total.cost_usd is not None else total._replace(cost_usd=self._total.cost_usd)
        else:
            new = Usage(tokens_of(object_in(result.get("usage"))))
        self.spent = self.spent.plus(new)
        return new
