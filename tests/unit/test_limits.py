"""At stake: a limit is the task's value or its default; an impossible value is refused by name, never adjusted."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.domain.tree.limits import FIELDS, KEYS, BadLimit, Limits, check_limit, limits_from

GOOD = {
    "maxConcurrentAgents": st.integers(1, 10_000),
    "timeoutSeconds": st.floats(0.001, 365 * 86_400) | st.integers(1, 365 * 86_400),
    "graceSeconds": st.floats(0, 3600) | st.integers(0, 3600),
    "maxDepth": st.integers(0, 64),
    "maxOutputBytes": st.integers(1, 1 << 50),
}


@given(st.fixed_dictionaries({}, optional=GOOD))
def test_each_key_is_taken_and_each_missing_one_keeps_its_default(config: dict[str, Any]) -> None:
    limits, defaults = limits_from(config), Limits()
    for key, field in FIELDS.items():
        assert getattr(limits, field) == config.get(key, getattr(defaults, field))


@given(st.fixed_dictionaries({}, optional=GOOD), st.fixed_dictionaries({}, optional=GOOD))
def test_a_base_is_overlaid_key_by_key(base: dict[str, Any], over: dict[str, Any]) -> None:
    assert limits_from(over, limits_from(base)) == limits_from({**base, **over})


@given(st.fixed_dictionaries({}, optional=GOOD))
def test_what_was_taken_is_told_under_the_same_keys(config: dict[str, Any]) -> None:
    told = limits_from(config).to_json()
    assert set(told) == set(KEYS.values())
    assert limits_from(told) == limits_from(config)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("maxConcurrentAgents", 10_001), ("maxConcurrentAgents", -1),
        ("maxConcurrentAgents", 2.0), ("timeoutSeconds", 0), ("timeoutSeconds", -1),
        ("timeoutSeconds", 365 * 86_400 + 1),
        ("graceSeconds", -0.001), ("graceSeconds", 3600.5), ("maxDepth", -1), ("maxDepth", 65), ("maxDepth", 1.5),
        ("maxOutputBytes", 0), ("maxOutputBytes", (1 << 50) + 1),
    ],
)  # fmt: skip
def test_a_value_out_of_range_is_refused_with_key_range_and_value(key: str, value: float) -> None:
    with pytest.raises(BadLimit, match=f"{key} must be a (whole )?number from .* to .*, not {value!r}") as caught:
        check_limit(key, value)
    assert caught.value.key == key


@pytest.mark.parametrize("key", KEYS.values())
@pytest.mark.parametrize(
    "value", [True, False, None, "5", "", [], {}, math.nan, math.inf, -math.inf, 10**400], ids=repr
)
def test_what_is_no_number_is_refused_for_every_key(key: str, value: object) -> None:
    with pytest.raises(BadLimit, match=key):
        check_limit(key, value)


@given(st.text(max_size=30).filter(lambda key: key not in FIELDS))
def test_an_unknown_key_is_refused_with_the_known_ones(key: str) -> None:
    with pytest.raises(BadLimit, match="unknown key") as caught:
        limits_from({key: 1})
    assert all(known in str(caught.value) for known in FIELDS)
