"""Writes the head of a new task.yaml: a line for each key, without a YAML library.

Strings and collections in JSON are valid YAML too, apart from the exceptions handled here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agentctl.adapters.taskyaml.roster import scalar


def yaml_head(values: Mapping[str, Any]) -> bytes:
    """Return `values` as YAML in the order of its keys, one line each."""
    return "".join(f"{scalar(key)}: {_flow(value)}\n" for key, value in values.items()).encode()


def _flow(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{scalar(key)}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, float):
        return _number(value)
    return json.dumps(value)


def _text(value: str) -> str:
    """Return a text, quoted unless it is a plain name; unprintable characters are escaped, as YAML demands."""
    if scalar(value) == value:
        return value
    quoted = json.dumps(value, ensure_ascii=False)
    return "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in quoted)


def _number(value: float) -> str:
    """Return a number; YAML 1.1 would not read one with an exponent and no point as a number."""
    digits, mark, exponent = repr(value).partition("e")
    return f"{digits}{'' if '.' in digits else '.0'}e{exponent}" if mark else digits
