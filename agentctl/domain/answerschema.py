"""The part of JSON Schema (2020-12) by which an agent's final answer can be checked.

A schema that uses more than this part is refused when the agent is spawned: a keyword that is passed over in silence
would let through what it forbids.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from agentctl.errors import UsageError

_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "number": (int, float),
    "integer": (int, float),
}  # fmt: skip
#: They say something to people, and nothing about what fits.
_SILENT = frozenset({"$schema", "$id", "$comment", "title", "description", "default", "examples", "deprecated"})
_SIZES = {"minLength": (str, 1), "maxLength": (str, -1), "minItems": (list, 1), "maxItems": (list, -1),
          "minProperties": (dict, 1), "maxProperties": (dict, -1)}  # fmt: skip
_BOUNDS = {"minimum": (1, False), "maximum": (-1, False), "exclusiveMinimum": (1, True), "exclusiveMaximum": (-1, True)}
_LISTS = frozenset({"anyOf", "oneOf", "allOf"})
KEYWORDS = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "pattern", "uniqueItems"}
    | _SIZES.keys() | _BOUNDS.keys() | _LISTS
)  # fmt: skip
_DEEPEST, _SHOWN = 50, 80


def check_schema(schema: Any, where: str = "the schema", depth: int = 0) -> None:
    """Raise `UsageError` for a schema that is none, or says more than can be checked here."""
    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        raise UsageError(f"{where} must be an object or a boolean, not nested too deeply, and is {_shown(schema)}")
    unknown = sorted(schema.keys() - KEYWORDS - _SILENT)
    if unknown:
        raise UsageError(
            f"{where} uses {unknown[0]!r}, which cannot be checked", hint=f"known: {', '.join(sorted(KEYWORDS))}"
        )
    for key, value in schema.items():
        if not _is_meant(key, value):
            raise UsageError(f"{where}: {key} cannot be {_shown(value)}")
    for path, below in _schemas_in(schema):
        check_schema(below, f"{where}, {path}", depth + 1)


def _is_meant(key: str, value: Any) -> bool:
    match key:
        case "type":
            names = value if isinstance(value, list) else [value]
            return bool(names) and all(isinstance(name, str) and name in _TYPES for name in names)
        case "properties":
            return isinstance(value, Mapping)
        case "required":
            return isinstance(value, list) and all(isinstance(name, str) for name in value)
        case "enum" | "anyOf" | "oneOf" | "allOf":
            return isinstance(value, list) and bool(value)
        case "pattern":
            return isinstance(value, str) and _compiled(value) is not None
        case "uniqueItems":
            return isinstance(value, bool)
    if key in _SIZES:
        return type(value) is int and value >= 0
    return key not in _BOUNDS or (isinstance(value, (int, float)) and not isinstance(value, bool))


def _compiled(pattern: str) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return None


def _schemas_in(schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, below in schema.get("properties", {}).items():
        yield f"properties.{name}", below
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield key, schema[key]
    for key in _LISTS & schema.keys():
        for index, below in enumerate(schema[key]):
            yield f"{key}.{index}", below


def problem_of(value: Any, schema: Any, where: str = "the answer") -> str | None:
    """Return the first thing in `value` that does not fit a checked schema; None where it fits.

    >>> problem_of({"n": "x"}, {"properties": {"n": {"type": "integer"}}})
    'the answer.n must be of type integer, and is "x"'
    """
    return next(_problems(value, schema, where), None)


def _problems(value: Any, schema: Any, where: str) -> Iterator[str]:
    if isinstance(schema, bool):
        if not schema:
            yield f"{where} must not be there"
        return
    yield from _kind_problems(value, schema, where)
    yield from _size_problems(value, schema, where)
    if isinstance(value, dict):
        yield from _object_problems(value, schema, where)
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _problems(item, schema.get("items", True), f"{where}[{index}]")
        if schema.get("uniqueItems") and len({_canonical(item) for item in value}) < len(value):
            yield f"{where} must not hold the same item twice"
    yield from _choice_problems(value, schema, where)


def _kind_problems(value: Any, schema: Mapping[str, Any], where: str) -> Iterator[str]:
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(_is_of(value, name) for name in types):
        yield f"{where} must be of type {' or '.join(types)}, and is {_shown(value)}"
    if "enum" in schema and _canonical(value) not in map(_canonical, schema["enum"]):
        yield f"{where} must be one of {_shown(schema['enum'])}, and is {_shown(value)}"
    if "const" in schema and _canonical(value) != _canonical(schema["const"]):
        yield f"{where} must be {_shown(schema['const'])}, and is {_shown(value)}"
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        yield f"{where} must match {schema['pattern']}, and is {_shown(value)}"


def _is_of(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer":
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return isinstance(value, _TYPES[name])


def _size_problems(value: Any, schema: Mapping[str, Any], where: str) -> Iterator[str]:
    for key, (kind, sign) in _SIZES.items():
        if key in schema and isinstance(value, kind) and sign * (len(value) - schema[key]) < 0:
            yield f"{where}: {key} is {schema[key]}, and it has {len(value)}"
    for key, (sign, is_open) in _BOUNDS.items():
        if key in schema and isinstance(value, (int, float)) and not isinstance(value, bool):
            beyond = sign * (value - schema[key])
            if beyond < 0 or (is_open and beyond == 0):
                yield f"{where}: {key} is {schema[key]}, and it is {_shown(value)}"


def _object_problems(value: dict[str, Any], schema: Mapping[str, Any], where: str) -> Iterator[str]:
    for name in schema.get("required", []):
        if name not in value:
            yield f"{where} lacks {name}"
    known = schema.get("properties", {})
    for name, item in value.items():
        below = known[name] if name in known else schema.get("additionalProperties", True)
        if below is False and name not in known:
            yield f"{where} must not have {name}"
        else:
            yield from _problems(item, below, f"{where}.{name}")


def _choice_problems(value: Any, schema: Mapping[str, Any], where: str) -> Iterator[str]:
    for key in sorted(_LISTS & schema.keys()):
        found = [problem_of(value, below, where) for below in schema[key]]
        fitting = found.count(None)
        if key == "allOf" and fitting < len(found):
            yield next(filter(None, found))
        elif key == "anyOf" and not fitting:
            yield f"{where} fits none of anyOf: {found[0]}"
        elif key == "oneOf" and fitting != 1:
            yield f"{where} must fit exactly one of oneOf, and fits {fitting}"


def _canonical(value: Any) -> str:
    """Return a text that two values share which JSON Schema calls equal: 1 is 1.0, and true is not 1."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list):
        return f"[{','.join(map(_canonical, value))}]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{_canonical(value[key])}" for key in sorted(value)) + "}"
    return json.dumps(value)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
