"""At stake: whatever the title of a task is, its task.yaml is valid YAML and contains that title."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentctl.adapters.taskyaml.writer import yaml_head
from agentctl.adapters.yamldoc import parse_yaml

KEYS = st.sampled_from(["id", "title", "config", "maxDepth", "y", "null", "on"])
LEAVES = (
    st.text()
    | st.sampled_from(["1", "yes", "2026-11-22", "a: b", "# c", "- d", "\x85\ufeff\ud800\U0001f600", ""])
    | st.booleans()
    | st.none()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))


@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_what_is_written_is_what_is_read(values: dict[str, Any]) -> None:
    assert parse_yaml(Path("/t/task.yaml"), yaml_head(values)).value == values


def test_each_key_has_a_line_of_its_own() -> None:
    head = yaml_head({"id": "t", "title": "two\nlines", "config": {"maxDepth": 2}})
    assert head == b'id: t\ntitle: "two\\nlines"\nconfig: {maxDepth: 2}\n'
