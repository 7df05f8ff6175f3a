"""Counts the tokens that an ACP program reports, and reads what it passes on about its account's usage windows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentctl.domain.activity.row import Row, RowType
from agentctl.domain.windows import Window
from agentctl.drivers.acp.program import PER_SESSION, AcpProgram
from agentctl.drivers.acp.wire import PromptResponse, Usage
from agentctl.drivers.claude.account import windows_in as windows_of_claude
from agentctl.drivers.codex.account import windows_in as windows_of_codex
from agentctl.drivers.order import Order
from agentctl.drivers.values import object_in

_NAMES = ("input", "output", "cached")


class AcpUsage:
    """The tokens of one run, each counted once.

    A program reports those of its session so far, those of a turn, or, as some do, only those of the last request in
    a turn: then nothing is counted. Which of these it is, its row says.
    """

    def __init__(self, order: Order, row: AcpProgram) -> None:
        self._order, self._row = order, row
        #: What the session had used up before this run; None until that is known.
        self._before = dict(order.used_before) if order.used_before else None if order.resume else _none()
        self._total, self._turns = _none(), 0

    def of_turn(self, response: PromptResponse | None) -> list[Row]:
        """Return the row of what was used up so far, at the end of a turn."""
        usage = response.usage if response is not None else None
        if usage is None or not self._row.usage:
            return []
        tokens = _tokens(usage)
        if self._row.usage == PER_SESSION:
            # The first report of a session that somebody else began: only what comes from now on can be counted.
            self._before = tokens if self._before is None else self._before
            self._total = tokens
        else:
            self._before = self._before or _none()
            self._total = {name: self._total[name] + tokens[name] for name in _NAMES}
        earlier = f":{self._order.earlier_attempts}" if self._order.earlier_attempts else ""
        return [Row(RowType.USAGE, f"usage{earlier}", detail=self.spent())]

    def spent(self) -> dict[str, int]:
        """Return the tokens of this run."""
        before = (self._before or _none()) if self._row.usage == PER_SESSION else _none()
        return {name: max(0, self._total[name] - before.get(name, 0)) for name in _NAMES}

    @property
    def used(self) -> Mapping[str, int] | None:
        """What the session has used up in all its runs, for a later one; None where the program does not tell."""
        return self._total if self._row.usage == PER_SESSION and any(self._total.values()) else None


def windows_in(params: Mapping[str, Any]) -> list[Window]:
    """Return the windows that a message reports beside its own content: in its `_meta`, or in that of its update."""
    found: list[Window] = []
    for holder in (params, object_in(params.get("update"))):
        for name, value in object_in(holder.get("_meta")).items():
            if name.endswith("rateLimit"):
                found += windows_of_claude({"rate_limit_info": value})
            elif name.endswith("rateLimits"):
                found += windows_of_codex({"rateLimits": value})
    return found


def _none() -> dict[str, int]:
    return dict.fromkeys(_NAMES, 0)


def _tokens(usage: Usage) -> dict[str, int]:
    """Return the tokens; what was written to the cache is input that was not read from it."""
    return {
        "input": usage.input_tokens + (usage.cached_write_tokens or 0),
        "output": usage.output_tokens,
        "cached": usage.cached_read_tokens or 0,
    }
