"""At stake: rows that are encoded column by column have the JSON that `json.dumps` gives them, to the character."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentctl.domain.states import Status
from agentctl.interfaces.cli.json_rows import RowEncoder

KEYS = st.lists(st.text(max_size=4) | st.sampled_from(["%s", "a\nb", '"']), unique=True, min_size=1, max_size=5)
#: Values that are equal without having the same JSON, among others that are likely to meet.
PLAIN: list[Any] = [None, True, False, 0, 1, 1.0, 0.0, -0.0, "", "%s", "a\nb", "\ud800", Status.FAILED, "failed", 2**70]
VALUES: st.SearchStrategy[Any] = (
    st.sampled_from([*PLAIN, [], {}, (), [1], [True], [[]], {"a": "\n"}, {"a": 1}, {"a": True}])
    | st.floats()
    | st.text()
)


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Return rows with the same keys; in some columns all rows have one value."""
    keys, size = draw(KEYS), draw(st.integers(1, 6))
    columns = [[draw(VALUES)] * size if draw(st.booleans()) else [draw(VALUES) for _ in range(size)] for _ in keys]
    return [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)]


OTHERS = st.lists(st.dictionaries(st.text(max_size=2), VALUES, max_size=3) | VALUES, min_size=1, max_size=5)


@given(rows=tables() | OTHERS, ensure_ascii=st.booleans())
@example(rows=[{"a": 0.0}, {"a": -0.0}], ensure_ascii=True)
@example(rows=[{"a": 1}, {"a": True}], ensure_ascii=True)
@example(rows=[{"a": [1]}, {"a": [True]}], ensure_ascii=True)
@example(rows=[{"a": 1, "b": 2}, {"b": 2, "a": 1}], ensure_ascii=True)
@example(rows=[{}, {}], ensure_ascii=True)
def test_the_text_of_rows_is_that_of_json_dumps(rows: list[Any], ensure_ascii: bool) -> None:
    text = RowEncoder(ensure_ascii=ensure_ascii).encode(rows)
    assert f"[{text}]" == json.dumps(rows, ensure_ascii=ensure_ascii, separators=(",", ":"))


@pytest.mark.parametrize("column", [["a", "a"], [None, None], [0.5, 0.5], ["a", 1], [[1], [2]]])
def test_each_way_to_encode_a_column_is_tried(column: list[Any]) -> None:
    rows = [{"n": n, "x": value} for n, value in enumerate(column)]
    assert json.loads(f"[{RowEncoder(ensure_ascii=True).encode(rows)}]") == rows
