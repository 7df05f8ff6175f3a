"""Counts the tokens that an ACP program reports, and reads what it passes on about its account's usage windows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentctl.domain.activity.row import Row, RowType
from agentctl.domain.tree.windows import Window
from agentctl.drivers.acp.program import PER_MESSAGE, PER_SESSION, PER_TURN, AcpProgram
from agentctl.drivers.acp.wire import PromptResponse, Usage, UsageUpdate, read_as_model
from agentctl.drivers.claude.account import claude_windows as windows_of_claude
from agentctl.drivers.codex.account import codex_windows as windows_of_codex
from agentctl.drivers.order import Order
from agentctl.drivers.values import count_in, money_in, object_in

_NAMES = ("input", "output", "cached")
#: Money is kept in whole millionths of a US dollar, beside the tokens.
_COST, _MICROS = "microdollars", 1_000_000


class AcpUsage:
    """The tokens and the money of one run, counted once.

    A program reports the tokens of its session so far, those of a turn, or, as some do, only those of the last request
    in a turn: then none are counted. Which of these it is, its row says. Money is always that of the session so far.
    """

    def __init__(self, order: Order, row: AcpProgram) -> None:
        self._order, self._row = order, row
        #: What the session had used up before this run, as far as that is known.
        self._before: dict[str, int] = dict(order.used_before or {})
        #: What the session has used up in all its runs, as far as it was reported.
        self._total: dict[str, int] = dict(self._before)

    def of_turn(self, response: PromptResponse | None) -> list[Row]:
        """Return the row of the tokens so far, at the end of a turn."""
        usage = response.usage if response is not None else None
        if usage is None or self._row.usage not in {PER_TURN, PER_SESSION}:
            return []
        tokens = _tokens(usage)
        if self._row.usage == PER_TURN:
            tokens = {name: self._total.get(name, 0) + count for name, count in tokens.items()}
        self._report(tokens)
        return [self._tokens_row()]

    def of_message(self, update: Mapping[str, Any]) -> list[Row]:
        """Return the row of the tokens so far, where a message comes with those of the request that it answers."""
        usage = object_in(object_in(update.get("_meta")).get("usage"))
        if self._row.usage != PER_MESSAGE or not usage:
            return []
        cached = count_in(usage.get("cachedReadTokens"))
        fresh = max(0, count_in(usage.get("inputTokens")) - cached)
        tokens = {"input": fresh, "output": count_in(usage.get("outputTokens")), "cached": cached}
        self._report({name: self._total.get(name, 0) + count for name, count in tokens.items()})
        return [self._tokens_row()]

    def of_session(self, update: Mapping[str, Any]) -> None:
        """Take in a `usage_update`: what the session has cost so far."""
        usage = read_as_model(UsageUpdate, update)
        if usage is not None and usage.cost is not None and usage.cost.currency == "USD" and self._row.reports_cost:
            micros = round((money_in(usage.cost.amount) or 0) * _MICROS)
            self._report({_COST: max(micros, self._total.get(_COST, 0))})

    def _tokens_row(self) -> Row:
        earlier = f":{self._order.earlier_attempts}" if self._order.earlier_attempts else ""
        return Row(RowType.USAGE, f"usage{earlier}", detail=self.spent())

    def _report(self, total: Mapping[str, int]) -> None:
        for name, count in total.items() if self._order.resume else ():
            # Of what is not known of the session so far, only what comes from now on can be counted.
            is_of_session = name == _COST or self._row.usage == PER_SESSION
            self._before.setdefault(name, count if is_of_session else 0)
        self._total.update(total)

    def _since(self, name: str) -> int:
        return max(0, self._total.get(name, 0) - self._before.get(name, 0))

    def spent(self) -> dict[str, int]:
        """Return the tokens of this run."""
        return {name: self._since(name) for name in _NAMES}

    @property
    def cost_usd(self) -> float | None:
        """What this run has cost, in US dollars; None where that is not reported.

        A program that does not know the price of a model reports 0.
        """
        return self._since(_COST) / _MICROS or None

    @property
    def used(self) -> Mapping[str, int] | None:
        """What the session has used up in all its runs, for a later one; None where nothing was reported."""
        return self._total or None


def acp_windows(params: Mapping[str, Any]) -> list[Window]:
    """Return the windows that a message reports beside its own content: in its `_meta`, or in that of its update."""
    found: list[Window] = []
    for holder in (params, object_in(params.get("update"))):
        for name, value in object_in(holder.get("_meta")).items():
            if name.endswith("rateLimit"):
                found += windows_of_claude({"rate_limit_info": value})
            elif name.endswith("rateLimits"):
                found += windows_of_codex({"rateLimits": value})
    return found


def _tokens(usage: Usage) -> dict[str, int]:
    """Return the tokens; what was written to the cache is input that was not read from it."""
    return {
        "input": count_in(usage.input_tokens) + count_in(usage.cached_write_tokens),
        "output": count_in(usage.output_tokens),
        "cached": count_in(usage.cached_read_tokens),
    }
