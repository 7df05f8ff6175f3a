"""At stake: an answer is judged as JSON Schema says, and no keyword of a schema is silently ignored."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentctl.domain.states import Reason
from agentctl.domain.text.jsonschema import KEYWORDS, check_schema, problem_of
from agentctl.drivers.dialogue import AgentOutcome
from agentctl.drivers.order import Order
from agentctl.errors import UsageError
from agentctl.worker_programs.agent_host.answer_check import REPAIRS, FinalAnswer

NAMES = st.sampled_from(["a", "b", "c"])
NUMBERS = st.integers(-2, 3) | st.sampled_from([0.5, 1.0, -1.5])
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text("ab1", max_size=3),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(NAMES, below, max_size=3),
    max_leaves=6,
)
TYPES = st.sampled_from(["object", "array", "string", "boolean", "null", "number", "integer"])
SIZES = ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"]
BOUNDS = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]


def _objects(below: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional={
        "type": TYPES | st.lists(TYPES, min_size=1, max_size=2, unique=True),
        "properties": st.dictionaries(NAMES, below, max_size=2), "required": st.lists(NAMES, max_size=2, unique=True),
        "additionalProperties": below, "items": below, "enum": st.lists(VALUES, min_size=1, max_size=3),
        "const": VALUES, "pattern": st.sampled_from(["a", "^b", "1$"]), "uniqueItems": st.booleans(),
        "title": st.just("t"), **dict.fromkeys(SIZES, st.integers(0, 2)), **dict.fromkeys(BOUNDS, NUMBERS),
        **{key: st.lists(below, min_size=1, max_size=2) for key in ("anyOf", "oneOf", "allOf")},
    })  # fmt: skip


SCHEMAS = st.recursive(st.booleans(), _objects, max_leaves=6)


@settings(max_examples=100)
@given(SCHEMAS, VALUES)
def test_a_value_fits_exactly_where_the_reference_says_so(schema: Any, value: Any) -> None:
    reference = pytest.importorskip("jsonschema").Draft202012Validator(schema)
    check_schema(schema)
    assert (problem_of(value, schema) is None) == reference.is_valid(value), problem_of(value, schema)


@given(SCHEMAS.filter(lambda schema: isinstance(schema, dict)), st.sampled_from(["if", "$ref", "format", "contains"]))
def test_a_keyword_that_cannot_be_checked_is_refused_wherever_it_stands(schema: Any, keyword: str) -> None:
    bad: dict[str, Any] = {keyword: {}}
    places: list[dict[str, Any]] = [bad, {"items": bad}, {"properties": {"a": bad}}, {"anyOf": [bad]}]
    for place in places:
        with pytest.raises(UsageError, match=re.escape(f"'{keyword}'")):
            check_schema({**schema, **place})


@pytest.mark.parametrize(
    "schema",
    [{"type": "int"}, {"type": []}, {"required": "a"}, {"enum": []}, {"minLength": -1}, {"minimum": "1"},
     {"pattern": "("}, {"properties": []}, {"anyOf": {}}, {"items": 3}, {"uniqueItems": 1}, []],
)  # fmt: skip
def test_a_schema_that_cannot_be_meant_is_refused(schema: Any) -> None:
    with pytest.raises(UsageError):
        check_schema(schema)


def test_the_problem_names_the_place() -> None:
    schema = {"properties": {"rows": {"items": {"required": ["id"]}}}}
    assert problem_of({"rows": [{"id": 1}, {}]}, schema) == "the answer.rows[1] lacks id"
    assert len(KEYWORDS) == 22


@pytest.mark.parametrize("value", [float("nan"), 10**400])
def test_a_number_that_no_bound_can_be_taken_from_fits_none(value: float) -> None:
    assert problem_of(value, {"minimum": 0.5, "maximum": 1e300}) is not None


# -- the words for an agent --------------------------------------------------------------------------------------------


def answer_of(schema: dict[str, Any] | None) -> FinalAnswer:
    order = Order(driver="claude", program="p", agent="a", prompt="x", output_schema=schema)
    return FinalAnswer(order)


def test_an_answer_is_mended_only_so_often_and_then_fails() -> None:
    answer = answer_of({"type": "integer"})
    told = [answer.repair(AgentOutcome(final_message="one")) for _ in range(REPAIRS + 1)]
    assert all(told[:REPAIRS])
    assert told[REPAIRS] is None
    judged = answer.judged(AgentOutcome(final_message="one"))
    assert (judged.reason, judged.final_message) == (Reason.SCHEMA, "one")


def test_a_failure_of_another_kind_and_a_free_answer_stay_what_they_are() -> None:
    failed = AgentOutcome(reason=Reason.AUTH, message="no key")
    assert answer_of({"type": "integer"}).repair(failed) is None
    assert answer_of({"type": "integer"}).judged(failed).reason is Reason.AUTH
    assert answer_of(None).judged(AgentOutcome(final_message="free")).final_message == "free"


@given(VALUES)
def test_a_fence_around_the_value_is_taken_off(value: Any) -> None:
    for text in (json.dumps(value), f"```json\n{json.dumps(value)}\n```", f"```\n{json.dumps(value)}\n```\n"):
        assert (
            json.loads(answer_of({"title": "t"}).judged(AgentOutcome(final_message=text)).final_message or "") == value
        )
