"""Checks values by a part of JSON Schema (2020-12): agents' final answers, and the arguments of tool calls.

A schema that uses more than this part is refused when an agent is spawned with it: a keyword that is silently ignored
would let through what it forbids.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agentctl.domain.text.plaintext import beginning
from agentctl.errors import UsageError
from agentctl.lean import NamedTuple

_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "number": (int, float),
    "integer": (int, float),
}  # fmt: skip
#: Notes for people, which do not restrict any value.
_SILENT = frozenset({"$schema", "$id", "$comment", "title", "description", "default", "examples", "deprecated"})
_SIZES = {
    "minLength": ("string", operator.ge), "maxLength": ("string", operator.le), "minItems": ("array", operator.ge),
    "maxItems": ("array", operator.le), "minProperties": ("object", operator.ge),
    "maxProperties": ("object", operator.le),
}  # fmt: skip
#: Comparisons, not differences: NaN fits no bound, and whole numbers may be larger than any float.
_BOUNDS = {
    "minimum": operator.ge, "maximum": operator.le, "exclusiveMinimum": operator.gt, "exclusiveMaximum": operator.lt,
}  # fmt: skip
_LISTS = frozenset({"anyOf", "oneOf", "allOf"})
KEYWORDS = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "pattern", "uniqueItems"}
    | _SIZES.keys() | _BOUNDS.keys() | _LISTS
)  # fmt: skip
_DEEPEST, _SHOWN = 50, 80


def check_schema(schema: Any, where: str = "the schema", depth: int = 0) -> None:
    """Raise `UsageError` for what is not a schema, or uses keywords that cannot be checked here."""
    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        raise UsageError(
            f"{where} must be an object or a boolean, not nested too deeply, and is {json_beginning(schema)}"
        )
    unknown = sorted(schema.keys() - KEYWORDS - _SILENT)
    if unknown:
        raise UsageError(
            f"{where} uses {unknown[0]!r}, which cannot be checked", hint=f"known: {', '.join(sorted(KEYWORDS))}"
        )
    for key, value in schema.items():
        if not _is_valid(key, value):
            raise UsageError(f"{where}: {key} cannot be {json_beginning(value)}")
    for path, below in _schemas_in(schema):
        check_schema(below, f"{where}, {path}", depth + 1)


def _is_valid(key: str, value: Any) -> bool:
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


class Problem(NamedTuple):
    """What does not fit a schema: where, and which keyword it violates."""

    #: The place in the value: `the answer.rows[1]`.
    where: str
    #: `schema` for a schema that is `false`.
    keyword: str
    value: Any
    schema: Mapping[str, Any]
    #: The property that is missing, or must not be there; for `oneOf`, how many of its schemas fit.
    detail: str = ""
    #: For `anyOf`, the problem of the branch that comes nearest.
    nearest: Problem | None = None


def problem_of(value: Any, schema: Any, where: str = "the answer") -> str | None:
    """Return in words the first thing in `value` that does not fit a checked schema; None where it fits.

    >>> problem_of({"n": "x"}, {"properties": {"n": {"type": "integer"}}})
    'the answer.n must be of type integer, and is "x"'
    """
    problem = first_problem(value, schema, where)
    return None if problem is None else _in_words(problem)


def first_problem(value: Any, schema: Any, where: str) -> Problem | None:
    """Return the first thing in `value` that does not fit a checked schema; None where it fits."""
    return next(_problems(value, schema, where), None)


def _problems(value: Any, schema: Any, where: str) -> Iterator[Problem]:
    if isinstance(schema, bool):
        if not schema:
            yield Problem(where, "schema", value, {})
        return
    for keyword in _misfits(value, schema):
        yield Problem(where, keyword, value, schema)
    if isinstance(value, dict):
        yield from _object_problems(value, schema, where)
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _problems(item, schema.get("items", True), f"{where}[{index}]")
    yield from _choice_problems(value, schema, where)


def _misfits(value: Any, schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield the keywords that the value itself violates, not its parts."""
    types = types_in(schema)
    if types and not any(_is_of(value, name) for name in types):
        yield "type"
    if "enum" in schema and _canonical(value) not in map(_canonical, schema["enum"]):
        yield "enum"
    if "const" in schema and _canonical(value) != _canonical(schema["const"]):
        yield "const"
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        yield "pattern"
    for key, (kind, fits) in _SIZES.items():
        if key in schema and _is_of(value, kind) and not fits(len(value), schema[key]):
            yield key
    for key, holds in _BOUNDS.items():
        if key in schema and _is_of(value, "number") and not holds(value, schema[key]):
            yield key
    if schema.get("uniqueItems") and isinstance(value, list) and len(set(map(_canonical, value))) < len(value):
        yield "uniqueItems"


def types_in(schema: Mapping[str, Any]) -> list[str]:
    """Return the types that a schema names; none where it allows all."""
    types = schema.get("type", [])
    return [types] if isinstance(types, str) else list(types)


def _is_of(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer":
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return isinstance(value, _TYPES[name])


def _object_problems(value: dict[str, Any], schema: Mapping[str, Any], where: str) -> Iterator[Problem]:
    known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    if others is False:
        for name in value:
            if name not in known:
                yield Problem(where, "additionalProperties", value, schema, name)
    for name in schema.get("required", []):
        if name not in value:
            yield Problem(where, "required", value, schema, name)
    for name, item in value.items():
        yield from _problems(item, known.get(name, others), f"{where}.{name}")


def _choice_problems(value: Any, schema: Mapping[str, Any], where: str) -> Iterator[Problem]:
    for key in sorted(_LISTS & schema.keys()):
        found = [first_problem(value, below, where) for below in schema[key]]
        fitting = found.count(None)
        if key == "allOf" and fitting < len(found):
            yield next(filter(None, found))
        elif key == "anyOf" and not fitting:
            yield Problem(where, key, value, schema, nearest=_nearest(found, where))
        elif key == "oneOf" and fitting != 1:
            yield Problem(where, key, value, schema, detail=str(fitting))


def _nearest(found: Iterable[Problem | None], where: str) -> Problem:
    """Return the problem of the nearest branch: the first that takes values of this type, else the first."""
    problems = [problem for problem in found if problem is not None]
    return next((one for one in problems if (one.where, one.keyword) != (where, "type")), problems[0])


#: The message of a problem by its keyword; any other keyword is a bound.
_WORDS = {
    "schema": "{where} must not be there",
    "type": "{where} must be of type {wanted}, and is {value}",
    "enum": "{where} must be one of {wanted}, and is {value}",
    "const": "{where} must be {wanted}, and is {value}",
    "pattern": "{where} must match {wanted}, and is {value}",
    "uniqueItems": "{where} must not hold the same item twice",
    "required": "{where} lacks {detail}",
    "additionalProperties": "{where} must not have {detail}",
    "anyOf": "{where} fits none of anyOf: {nearest}",
    "oneOf": "{where} must fit exactly one of oneOf, and fits {detail}",
    **dict.fromkeys(_SIZES, "{where}: {keyword} is {wanted}, and it has {size}"),
}
_BOUND = "{where}: {keyword} is {wanted}, and it is {value}"


def _in_words(problem: Problem) -> str:
    where, keyword, value, schema, detail, nearest = problem
    wanted = " or ".join(types_in(schema)) if keyword == "type" else schema.get(keyword)
    return _WORDS.get(keyword, _BOUND).format(
        where=where, keyword=keyword, detail=detail, value=json_beginning(value),
        wanted=wanted if isinstance(wanted, str) and keyword != "const" else json_beginning(wanted),
        nearest=_in_words(nearest) if nearest is not None else "", size=len(value) if keyword in _SIZES else "",
    )  # fmt: skip


def _canonical(value: Any) -> str:
    """Return a text that is the same for values that are equal in JSON Schema: 1 equals 1.0, but true is not 1."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list):
        return f"[{','.join(map(_canonical, value))}]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{_canonical(value[key])}" for key in sorted(value)) + "}"
    return json.dumps(value)


def json_beginning(value: Any) -> str:
    """Return the beginning of a value as JSON."""
    return beginning(json.dumps(value, ensure_ascii=False, default=str), _SHOWN, "...")
