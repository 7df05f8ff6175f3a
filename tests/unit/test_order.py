"""At stake: how a program is started follows from the rules alone, and no rule that restricts is forgotten."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.domain.agent.permissions import answer_by, first_beyond, parse_policy, policy_in
from agentctl.domain.states import OWN
from agentctl.drivers.order import ALLOWING, ASKING, BY_OWN_SETTINGS, READ_ONLY, Order

LISTING = {"tool": "Bash", "pattern": "ls *", "answer": "allow"}
TOUCHING = {"tool": "Bash", "pattern": "touch *", "answer": "deny"}
ASKED = {"tool": "Bash", "pattern": "rm *", "answer": "ask"}


def order(*rules: dict[str, str], **more: Any) -> Order:
    return Order("claude", "/bin/claude", "general", "x", permissions=list(rules), **more)


@pytest.mark.parametrize(
    ("rules", "stance"),
    [
        ((), ASKING),
        ((LISTING,), ASKING),
        (parse_policy("ask"), ASKING),
        (parse_policy("deny"), ASKING),
        (parse_policy("allow"), ALLOWING),
        ((LISTING, *parse_policy("allow")), ALLOWING),
        ((TOUCHING, *parse_policy("allow")), ASKING),
        ((ASKED, *parse_policy("allow")), ASKING),
        ((*parse_policy("allow"), TOUCHING), ALLOWING),
        (parse_policy("own"), BY_OWN_SETTINGS),
        ((TOUCHING, *parse_policy("own")), BY_OWN_SETTINGS),
        ((*parse_policy("ask"), *parse_policy("own")), ASKING),
    ],
)
def test_how_a_program_is_started(rules: Any, stance: str) -> None:
    assert order(*rules).stance == stance
    assert order(*rules, read_only=True).stance == READ_ONLY


def test_what_agents_above_are_denied_keeps_a_program_asking() -> None:
    assert order(*parse_policy("allow"), denied_above=[[LISTING, TOUCHING]]).stance == ASKING
    assert order(*parse_policy("own"), denied_above=[[LISTING, TOUCHING]]).restrictions == [TOUCHING]


RULE = st.builds(
    lambda tool, pattern, answer: {"tool": tool, "pattern": pattern, "answer": answer},
    st.sampled_from(["*", "Bash", "Edit"]), st.sampled_from(["*", "ls *", "x"]),
    st.sampled_from(["allow", "deny", "ask"]),
)  # fmt: skip
POLICY = st.sampled_from(["allow", "deny", "ask", "own"])
CALL = st.sampled_from([("Bash", {"command": "ls x"}), ("Edit", {"file_path": "x"}), ("Other", {})])


@given(st.lists(RULE, max_size=5), POLICY, CALL)
def test_nothing_that_is_denied_or_asked_goes_unasked_where_a_program_asks_nothing(
    rules: list[dict[str, str]], policy: str, call: Any
) -> None:
    made = order(*rules, *parse_policy(policy))
    if made.stance == ALLOWING:
        assert answer_by(made.permissions, *call) == "allow" or not made.permissions
    if made.stance == BY_OWN_SETTINGS and not made.restrictions:
        assert answer_by(made.permissions, *call) != "deny"


@given(st.lists(RULE, max_size=5), st.lists(RULE, max_size=5))
def test_own_is_covered_by_itself_and_by_what_allows_everything(
    own: list[dict[str, str]], wished: list[dict[str, str]]
) -> None:
    everything, settings = parse_policy("allow"), parse_policy("own")
    assert first_beyond(settings, everything) is None
    assert first_beyond(settings, settings) is None
    assert first_beyond(everything, settings) == everything[0]
    if policy_in(own) not in ("allow", OWN):
        assert first_beyond(settings, own) is not None or any(rule["answer"] == "allow" for rule in own)


def test_what_a_program_asks_all_the_same_is_asked() -> None:
    assert answer_by(parse_policy("own"), "Bash", {"command": "ls"}) == "ask"
