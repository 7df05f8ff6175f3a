"""At stake: whatever a request holds, an endpoint gets checked values or refuses them; and all answers are JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.errors import UsageError
from agentctl.interfaces.web.endpoint import (
    BODY,
    NAME,
    PATH,
    QUERY,
    CheckedRequest,
    Endpoint,
    Input,
    JsonAnswer,
    read_body,
    snake,
)
from agentctl.interfaces.web.json_bytes import json_bytes


def _nothing(_request: CheckedRequest) -> JsonAnswer:
    return JsonAnswer(None)


def endpoint(method: str = "POST") -> Endpoint:
    """Return one that takes a value of each kind."""
    where = QUERY if method == "GET" else BODY
    return Endpoint(
        method, "/x/{task}", "x", "X.", _nothing,
        (
            Input("task", NAME, "", PATH, is_required=True),
            Input("text", {"type": "string", "maxLength": 20}, "", where),
            Input("whole", {"type": "integer", "minimum": 0, "maximum": 1 << 50}, "", where),
            Input("number", {"type": "number", "minimum": -1e9, "maximum": 1e9}, "", where),
            Input("flag_here", {"type": "boolean"}, "", where),
            Input("texts", {"type": "array", "items": {"type": "string"}, "maxItems": 3}, "", where),
        ),
    )  # fmt: skip


_JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
)
_KEYS = st.sampled_from(["text", "whole", "number", "flag_here", "flagHere", "texts", "task", "Text", ""]) | st.text()


@given(st.binary(max_size=200) | _JSON.map(lambda value: json.dumps(value).encode()))
def test_a_body_is_read_or_refused(data: bytes) -> None:
    try:
        value = read_body(data)
    except UsageError as error:
        error.message.encode()
        return
    assert json.loads(json.dumps(value, allow_nan=False)) == value


@given(st.dictionaries(_KEYS, _JSON, max_size=5), st.text(max_size=80))
def test_a_request_is_checked(body: dict[str, Any], task: str) -> None:
    try:
        values = endpoint().values_of({"task": task}, [], body)
    except UsageError:
        return
    assert values.keys() <= {"task", "text", "whole", "number", "flag_here", "texts"}
    assert type(values.get("whole", 0)) is int
    assert not isinstance(values.get("number", 0), bool)
    assert task.isascii()
    assert task.isprintable()


@given(st.lists(st.tuples(_KEYS, st.text(max_size=30)), max_size=5))
def test_a_query_is_checked(query: list[tuple[str, str]]) -> None:
    try:
        values = endpoint("GET").values_of({"task": "t"}, query, None)
    except UsageError:
        return
    assert all("\0" not in str(value) for value in values.values())


@given(st.integers(0, 1 << 50), st.floats(-1e9, 1e9), st.booleans(), st.lists(st.text("abc\n", max_size=5), max_size=3))
def test_values_come_through_a_query_as_they_are(whole: int, number: float, flag: bool, texts: list[str]) -> None:
    query = [("whole", str(whole)), ("number", str(number)), ("flagHere", str(flag).lower())]
    values = endpoint("GET").values_of({"task": "t"}, [*query, *(("texts", text) for text in texts)], None)
    assert values == {
        "task": "t", "whole": whole, "number": number, "flag_here": flag, **({"texts": texts} if texts else {}),
    }  # fmt: skip


@pytest.mark.parametrize(
    "body", [b'{"a":1,"a":2}', b'{"a":{"b":1,"b":1}}', b'{"n":NaN}', b'{"n":1e999}', b'{"n":-Infinity}', b"9" * 5000,
             b'"\\ud800"', b'"\\u0000"', b'{"\\u0000":1}', b"[" * 100_000 + b"]" * 100_000, b"[" * 65 + b"]" * 65,
             b"\xff", b"\xef\xbb\xbf{}", b"{} x", b"'x'", b"\0", b"{" * 3000],
)  # fmt: skip
def test_bodies_that_are_refused(body: bytes) -> None:
    with pytest.raises(UsageError) as refused:
        read_body(body)
    assert len(refused.value.message) < 400


@pytest.mark.parametrize(
    ("body", "value"),
    [(b"", {}), (b" \n", {}), (b"null", None), (b'"\\\\u0000"', "\\u0000"), (b"[" * 64 + b"]" * 64, ...)],
)
def test_bodies_that_are_read(body: bytes, value: Any) -> None:
    assert value is ... or read_body(body) == value
    read_body(body)


@pytest.mark.parametrize(
    ("query", "what"),
    [([("text", "a\0b")], "NUL"), ([("whole", "1"), ("whole", "1")], "twice"), ([("whole", "1.0")], "whole"),
     ([("whole", "\u0661")], "whole"), ([("whole", " 1")], "whole"), ([("number", "nan")], "number"),
     ([("number", "1e999")], "number"), ([("flag_here", "yes")], "true or false"), ([("nothing" * 99, "")], "unknown"),
     ([("text", "x" * 10_001)], "longer"), ([("task", "other")], "unknown"), ([("whole", "9" * 40)], "whole"),
     ([("flagHere", "true"), ("flag-here", "true")], "twice")],
)  # fmt: skip
def test_queries_that_are_refused(query: list[tuple[str, str]], what: str) -> None:
    with pytest.raises(UsageError, match=what) as refused:
        endpoint("GET").values_of({"task": "t"}, query, None)
    assert len(refused.value.message) < 400


def test_names_are_matched_to_their_end() -> None:
    for name in ("t\n", "t\r", "", "-t", "t" * 65, "t/..", "t\u200b", "\u0661"):
        with pytest.raises(UsageError):
            endpoint().values_of({"task": name}, [], {})


def test_a_key_in_two_spellings_is_given_twice() -> None:
    with pytest.raises(UsageError, match="twice"):
        endpoint().values_of({"task": "t"}, [], {"flagHere": True, "flag_here": True})
    assert snake("flagHere") == "flag_here"


def test_one_point_zero_is_a_whole_number() -> None:
    assert repr(endpoint().values_of({"task": "t"}, [], {"whole": 1.0})["whole"]) == "1"


@given(_JSON)
def test_whatever_is_answered_is_json(value: Any) -> None:
    def refuse(name: str) -> Any:
        raise AssertionError(name)

    json.loads(json_bytes(value).decode("utf-8"), parse_constant=refuse)


def test_what_no_file_should_hold_is_answered_as_json() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = [deep, {"k": float("nan")}]
    found = json_bytes({"deep": deep, "half": "\ud83d", "\udc00": 1, "inf": float("inf"), "big": 10**300})
    assert b"nested too deeply" in found
    value = json.loads(found)
    assert value["inf"] is None
    assert value["half"] == "?"
    assert value["big"] == 10**300
