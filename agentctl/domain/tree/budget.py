"""What a tree of tasks has used up, against what its root task allows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from agentctl.domain.tree.limits import KEYS, Limits
from agentctl.lean import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from agentctl.domain.documents.views import CountedFigures
    from agentctl.domain.documents.workers.worker import UsageSoFar

#: The unit that a driver must report -> the field of the limit that can be enforced then.
REPORTED = {"tokens": "max_tokens", "cost": "max_cost_usd"}


def unheld(limits: Limits, reports: Collection[str]) -> tuple[str, str] | None:
    """Return unit and key of the first limit that cannot be enforced on a program that reports only these units.

    >>> unheld(Limits(max_tokens=5), {"cost"}), unheld(Limits(max_tokens=5), {"tokens"})
    (('tokens', 'maxTokens'), None)
    """
    fields = ((unit, field) for unit, field in REPORTED.items() if unit not in reports)
    return next(((unit, KEYS[field]) for unit, field in fields if getattr(limits, field)), None)


class Spent(NamedTuple):
    """Tokens and money; the cost is None where none was reported, or there is nothing that costs."""

    input: int = 0
    output: int = 0
    cached: int = 0
    cost_usd: float | None = None
    #: Somebody whose tokens, or whose cost, would belong to it has told none: the figures are the least that it was.
    lacks_tokens: bool = False
    lacks_cost: bool = False

    @property
    def tokens(self) -> int:
        """The known tokens that count against a limit; those read from a cache do not."""
        return self.input + self.output

    @property
    def knows_tokens(self) -> bool:
        """Whether anybody has told tokens, or none were used: otherwise the figures say nothing."""
        return not self.lacks_tokens or self.tokens + self.cached > 0

    @property
    def at_least(self) -> list[str]:
        """Which figures are the least that it was: tokens, costUsd. One of which nothing is known is not among them."""
        tokens = ["tokens"] if self.lacks_tokens and self.knows_tokens else []
        return tokens + (["costUsd"] if self.lacks_cost and self.cost_usd is not None else [])

    def plus(self, other: Spent) -> Spent:
        """Return the sum of both.

        >>> Spent(1, 2, 3).plus(Spent(1, cost_usd=0.5)) == Spent(2, 2, 3, cost_usd=0.5)
        True
        """
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Spent(
            self.input + other.input,
            self.output + other.output,
            self.cached + other.cached,
            sum(costs) if costs else None,
            self.lacks_tokens or other.lacks_tokens,
            self.lacks_cost or other.lacks_cost,
        )

    def to_json(self) -> UsageSoFar:
        """Return it as files have it and `usage` prints it; what nobody has told is null.

        >>> Spent(lacks_tokens=True, cost_usd=0.5).to_json()
        {'input': None, 'output': None, 'cached': None, 'costUsd': 0.5}
        """
        known = self.knows_tokens
        value: UsageSoFar = {
            "input": self.input if known else None, "output": self.output if known else None,
            "cached": self.cached if known else None, "costUsd": self.cost_usd,
        }  # fmt: skip
        return {**value, "atLeast": self.at_least} if self.at_least else value

    def figures(self) -> CountedFigures:
        """Return it as `usage` and `timeline` print it: with the number of tokens that count against a limit."""
        return {**self.to_json(), "tokens": self.tokens if self.knows_tokens else None}


def spent_from(value: Mapping[str, Any]) -> Spent:
    """Return what a file reports; a value that is not a number counts as missing."""
    counts = [_amount(value.get(name)) for name in ("input", "output", "cached")]
    given, made, cached = (int(count or 0) for count in counts)
    cost, least = _amount(value.get("costUsd")), value.get("atLeast")
    least = least if isinstance(least, list) else []
    lacks_tokens = "tokens" in least or all(count is None for count in counts)
    return Spent(given, made, cached, cost, lacks_tokens, "costUsd" in least or cost is None)


def _amount(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if 0 <= value < 1e15 else None


def total(parts: Iterable[Spent]) -> Spent:
    """Return the sum of all parts."""
    found = Spent()
    for part in parts:
        found = found.plus(part)
    return found


class TreeUsage(NamedTuple):
    """What a tree has used up, and what is reserved."""

    spent: Spent = Spent()
    #: What live workers may still use up of budgets of their own, in US dollars.
    reserved_usd: float = 0
    #: How many workers were ever accepted.
    workers: int = 0
    #: How long at least one of them was at work.
    wall_s: float = 0

    def used(self) -> dict[str, float]:
        """Return field of the limits -> how much of it is used up."""
        return {
            "max_tokens": self.spent.tokens,
            "max_cost_usd": (self.spent.cost_usd or 0) + self.reserved_usd,
            "max_workers": self.workers,
            "max_wall_seconds": self.wall_s,
        }

    def left(self, limits: Limits) -> dict[str, float]:
        """Return key of the limit -> how much of it is left, for those that are set."""
        set_ = {field: getattr(limits, field) for field in self.used()}
        return {KEYS[field]: max(0, most - self.used()[field]) for field, most in set_.items() if most}

    def broken(self, limits: Limits) -> str | None:
        """Return the figures of the first limit that running agents have exceeded; None where there is none.

        >>> TreeUsage(Spent(input=100)).broken(Limits(max_tokens=100)) is None
        True
        >>> TreeUsage(Spent(cost_usd=2.5)).broken(Limits(max_cost_usd=2))
        'maxCostUsd is 2: 2.5 are used up'
        """
        own = self._replace(reserved_usd=0.0)
        for field in REPORTED.values():
            most, used = getattr(limits, field), own.used()[field]
            if most and used > most:
                return f"{KEYS[field]} is {most:g}: {_figures(own, field, used)}"
        return None

    def excess(self, limits: Limits, fields: Iterable[str], *, more_workers: int = 0) -> str | None:
        """Return the figures of the first of these limits that forbids another start; None where there is none.

        >>> TreeUsage(workers=3).excess(Limits(max_workers=3), ["max_workers"], more_workers=1)
        'maxWorkers is 3: 3 were started, 1 more is asked for'
        >>> TreeUsage(Spent(input=90, output=20)).excess(Limits(max_tokens=100), ["max_tokens"])
        'maxTokens is 100: 110 are used up'
        """
        used = self.used()
        for field in fields:
            most = getattr(limits, field)
            if not most:
                continue
            if field == "max_workers" and used[field] + more_workers > most:
                asked = f"{more_workers} more {'is' if more_workers == 1 else 'are'} asked for"
                return f"{KEYS[field]} is {most}: {self.workers} were started, {asked}"
            if field != "max_workers" and used[field] >= most:
                return f"{KEYS[field]} is {most:g}: {_figures(self, field, used[field])}"
        return None


def _figures(account: TreeUsage, field: str, used: float) -> str:
    if field == "max_cost_usd":
        reserved = f", {account.reserved_usd:.4g} are reserved" if account.reserved_usd else ""
        return f"{account.spent.cost_usd or 0:.4g} are used up{reserved}"
    return f"{used:.4g} s are used up" if field == "max_wall_seconds" else f"{used:.0f} are used up"
