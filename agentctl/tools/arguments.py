"""The arguments of a tool call: held to the tool's JSON schema, under any of the names that the tools' sources use.

Only what the schemas of our own tools need is understood here. The caller is a model: what is said has to tell it how
to do better.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentctl.errors import UsageError

if TYPE_CHECKING:
    from agentctl.tools.definition import Tool

Schema = Mapping[str, Any]

_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "object": (dict,),
    "array": (list,),
}
_LONGEST_SHOWN = 80


def arguments_of(tool: Tool, given: object, place: str | None = None) -> dict[str, Any]:
    """Return the arguments of a call of a tool, whichever program's shape they have.

    Args:
        place: What is said of it in errors; the tool's name without it.
    """
    adapted = tool.adapt(dict(given)) if isinstance(given, Mapping) else given
    return read_arguments(place or tool.name, tool.checked, tool.synonyms, adapted)


def read_arguments(tool: str, schema: Schema, synonyms: Mapping[str, str], given: object) -> dict[str, Any]:
    """Return the arguments under the names of the schema, without those that are left out.

    A model that has to fill in every key leaves one out by null, or by an empty text, list or object.

    Args:
        synonyms: Other name -> name in the schema.

    Raises:
        UsageError: A missing, unknown or unfitting argument; the message names it and what it may be.
    """
    if not isinstance(given, Mapping):
        raise UsageError(f"{tool}: the arguments must be an object, not {_shown(given)}")
    found: dict[str, Any] = {}
    for key, value in given.items():
        name = key if key in schema["properties"] else synonyms.get(key, key)
        if value is None or (name not in schema.get("required", ()) and _is_nothing(value)):
            continue
        if name in found and found[name] != value:
            raise UsageError(f"{tool}: {key} and {_other(synonyms, name, given, key)} mean the same, and differ")
        found[name] = _without_nothing(value, schema["properties"].get(name, {}))
    check(found, schema, tool)
    return found


def _is_nothing(value: object) -> bool:
    return value in ([], {}) or (isinstance(value, str) and not value.strip())


def _without_nothing(value: Any, schema: Schema) -> Any:
    """Return a list without the keys of its items that are left out."""
    inner = next((one for one in schema.get("items", {}).get("anyOf", [schema.get("items", {})]) if _known(one)), None)
    if not isinstance(value, list) or inner is None:
        return value
    return [_item(one, inner) if isinstance(one, Mapping) else one for one in value]


def _known(schema: Schema) -> bool:
    return "properties" in schema


def _item(item: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    needed = schema.get("required", ())
    return {
        key: value for key, value in item.items() if value is not None and (key in needed or not _is_nothing(value))
    }


def _other(synonyms: Mapping[str, str], name: str, given: Mapping[str, Any], key: str) -> str:
    return next(one for one in given if one != key and synonyms.get(one, one) == name)


def check(value: Any, schema: Schema, place: str) -> None:
    """Raise `UsageError` where a value is not as a schema wants it; `place` leads to it."""
    schema = _meant(value, schema, place)
    if "enum" in schema and value not in schema["enum"]:
        raise UsageError(f"{place} must be one of {', '.join(map(str, schema['enum']))}, not {_shown(value)}")
    if isinstance(value, int | float) and not isinstance(value, bool):
        _check_range(value, schema, place)
    elif isinstance(value, list):
        _check_length(value, schema, place)
        for number, item in enumerate(value):
            check(item, schema.get("items", {}), f"{place}[{number}]")
    elif isinstance(value, str):
        if len(value.strip()) < schema.get("minLength", 0):
            raise UsageError(f"{place} is empty")
    elif isinstance(value, dict) and "properties" in schema:
        _check_object(value, schema, place)


def _meant(value: Any, schema: Schema, place: str) -> Schema:
    """Return the schema to which a value is held: of several branches the one for values of its kind."""
    branches: list[Schema] = schema.get("anyOf") or [schema]
    for branch in branches:
        if "type" not in branch or _is(value, branch["type"]):
            return branch
    raise UsageError(f"{place} must be {_a([one['type'] for one in branches])}, not {_shown(value)}")


def _check_object(value: Mapping[str, Any], schema: Schema, place: str) -> None:
    known: Mapping[str, Schema] = schema["properties"]
    for key in value:
        if key not in known:
            raise UsageError(f"{place} takes no {key!r}", hint=f"it takes {', '.join(known)}")
    for key in schema.get("required", ()):
        if key not in value:
            raise UsageError(f"{place} lacks {key!r}", hint=str(known[key].get("description", "")) or None)
    for key, item in value.items():
        check(item, known[key], f"{place}.{key}")


def _check_range(value: float, schema: Schema, place: str) -> None:
    low, high = schema.get("minimum"), schema.get("maximum")
    if (low is not None and value < low) or (high is not None and value > high) or value != value:  # noqa: PLR0124 - NaN
        bounds = f"from {low} to {high}" if high is not None else f"at least {low}"
        raise UsageError(f"{place} must be {bounds}, not {value}")


def _check_length(value: list[Any], schema: Schema, place: str) -> None:
    low, high = schema.get("minItems", 0), schema.get("maxItems")
    if len(value) < low or (high is not None and len(value) > high):
        bounds = f"from {low} to {high}" if high is not None else f"at least {low}"
        raise UsageError(f"{place} must have {bounds} items, not {len(value)}")


def _is(value: object, kind: str) -> bool:
    if kind in ("integer", "number") and isinstance(value, bool):
        return False
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return True
    return isinstance(value, _KINDS[kind])


def _a(kinds: list[str]) -> str:
    return " or ".join(f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}" for kind in kinds)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."
