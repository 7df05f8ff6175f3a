"""At stake: what a tree has used is counted exactly once, in any order, and a limit refuses with true figures."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.domain import events as ev
from agentctl.domain.states import Reason, Status
from agentctl.domain.tree.breaker import COUNTED, NEUTRAL, End, breakers
from agentctl.domain.tree.budget import Spent, TreeUsage, spent_from, total
from agentctl.domain.tree.limits import Limits
from agentctl.domain.tree.treefacts import TreeFacts

SPENT = st.builds(
    Spent, st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**9), st.none() | st.integers(0, 1000)
)


@given(st.lists(SPENT, max_size=5), st.randoms())
def test_a_total_does_not_depend_on_the_order(parts: list[Spent], random: Any) -> None:
    before = total(parts)
    random.shuffle(parts)
    assert total(parts) == before
    assert before.tokens == sum(part.input + part.output for part in parts)


@given(SPENT)
def test_what_was_written_is_read_again(spent: Spent) -> None:
    told = spent._replace(lacks_cost=spent.lacks_cost or spent.cost_usd is None)
    assert spent_from(told.to_json()) == told


def test_what_nobody_told_is_no_figure_and_makes_a_sum_the_least_that_it_was() -> None:
    silent, told, command = spent_from({"costUsd": 0.5}), spent_from({"input": 4, "output": 1, "cached": 2}), Spent()
    none = dict.fromkeys(("input", "output", "cached", "tokens"))
    assert silent.figures() == total([silent, command]).figures() == {**none, "costUsd": 0.5}
    sums = {"input": 4, "output": 1, "cached": 2, "tokens": 5, "costUsd": 0.5, "atLeast": ["tokens", "costUsd"]}
    assert total([silent, told, command]).figures() == sums
    assert total([told, command]).figures() == {"input": 4, "output": 1, "cached": 2, "tokens": 5, "costUsd": None}
    assert command.figures()["tokens"] == 0, "a command uses none, which is known"


@pytest.mark.parametrize("value", [{"input": -1}, {"input": "9"}, {"input": True}, {"costUsd": float("nan")}, {}])
def test_what_is_no_amount_counts_as_none(value: dict[str, Any]) -> None:
    assert spent_from(value) == Spent(lacks_tokens=True, lacks_cost=True)


def test_nothing_is_limited_by_default() -> None:
    account = TreeUsage(Spent(10**12, 10**12, 0, 10.0**6), 10.0**6, 10**6, 10.0**9)
    limits = Limits()
    assert not limits.has_budget
    assert account.excess(limits, ("max_tokens", "max_cost_usd", "max_workers", "max_wall_seconds")) is None
    assert account.broken(limits) is None
    assert account.left(limits) == {}


@given(SPENT, st.integers(1, 10**9), st.integers(0, 50), st.integers(0, 50), st.integers(1, 20))
def test_what_is_left_and_what_is_refused_agree(spent: Spent, most: int, started: int, cap: int, more: int) -> None:
    limits = Limits(max_tokens=most, max_workers=cap)
    account = TreeUsage(spent, workers=started)
    assert (account.excess(limits, ["max_tokens"]) is None) == (account.left(limits)["maxTokens"] > 0)
    fits = not cap or started + more <= cap
    assert (account.excess(limits, ["max_workers"], more_workers=more) is None) == fits


def test_what_is_reserved_refuses_a_start_and_breaks_nothing() -> None:
    account, limits = TreeUsage(Spent(cost_usd=1.0), reserved_usd=1.0), Limits(max_cost_usd=2)
    assert account.excess(limits, ["max_cost_usd"]) == "maxCostUsd is 2: 1 are used up, 1 are reserved"
    assert account.broken(limits) is None


# -- breakers ----------------------------------------------------------------------------------------------------------


def failed(at: float, reason: Reason, agent: str = "plan") -> End:
    return End(at, agent, Status.FAILED, reason)


def test_only_what_speaks_against_the_agent_counts() -> None:
    for reason in Reason:
        row = [failed(1, Reason.AUTH), failed(2, reason), failed(3, Reason.AUTH)]
        expected = 3 if reason in COUNTED else 2 if reason in NEUTRAL else 1
        assert breakers(row)["plan"].failures == expected, reason
    cancelled = [failed(1, Reason.AUTH), End(2, "plan", Status.CANCELLED), failed(3, Reason.AUTH)]
    assert breakers(cancelled)["plan"].failures == 2
    assert not COUNTED & NEUTRAL


def test_it_opens_for_a_while_and_each_agent_for_itself() -> None:
    limits = Limits(breaker_failures=2, breaker_cooldown_seconds=10)
    found = breakers([failed(1, Reason.AUTH), failed(2, Reason.AUTH), failed(2, Reason.AUTH, "explore")])
    plan, explore = found["plan"], found["explore"]
    assert [plan.left(limits, age) for age in (0, 9.5, 10, 1e9, None)] == [10, 0.5, 0, 0, 0]
    assert explore.left(limits, 0) == 0
    assert plan.left(limits._replace(breaker_failures=0), 0) == 0


def test_a_person_closes_it() -> None:
    assert breakers([failed(1, Reason.AUTH), failed(2, Reason.AUTH), End(3, "plan")]) == {}


# -- the logs of a tree ------------------------------------------------------------------------------------------------


def event(at: int, kind: str, instance: str, **payload: Any) -> tuple[int, ev.Event]:
    return at, ev.make_event(f"2026-11-22T01:00:{at:02}.000Z", kind, "t", "agentctl", payload, instance)


def test_commands_have_no_breaker() -> None:
    facts = TreeFacts()
    rows = [event(1, ev.QUEUED, "a", agent="plan", driver="claude"), event(2, ev.FAILED, "a", reason="auth"),
            event(3, ev.QUEUED, "b"), event(4, ev.FAILED, "b", reason="exit_code")]  # fmt: skip
    facts.apply("t", rows)
    assert [(end.agent, end.reason) for end in facts.ends()] == [("plan", "auth")]
    close = ev.make_event("2026-11-22T01:00:09.000Z", ev.BREAKER_CLOSED, "t", "user", {"agent": "plan"})
    facts.apply("t", [(5, close)])
    assert breakers(facts.ends()) == {}
