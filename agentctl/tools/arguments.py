"""Reads the arguments of a tool call, under any of their names, and checks them against the tool's JSON schema.

The caller is a model, so an error says how to correct the call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentctl.domain.text.jsonschema import Problem, first_problem, json_beginning, types_in
from agentctl.errors import UsageError

if TYPE_CHECKING:
    from agentctl.tools.definition import Tool

Schema = Mapping[str, Any]


def call_arguments(tool: Tool, given: object, place: str | None = None) -> dict[str, Any]:
    """Return the arguments of a tool call; those in another program's form are translated.

    Args:
        place: How errors name the call; by default the tool's name.
    """
    adapted = tool.adapt(dict(given)) if isinstance(given, Mapping) else given
    return read_arguments(place or tool.name, tool.checked, tool.synonyms, adapted)


def read_arguments(tool: str, schema: Schema, synonyms: Mapping[str, str], given: object) -> dict[str, Any]:
    """Return the arguments under their names in the schema, without empty ones.

    A model that has to fill in every key omits one by null, or by an empty text, list or object.

    Args:
        synonyms: Other name -> name in the schema.

    Raises:
        UsageError: An argument is missing, unknown or invalid; the message names it and what it may be.
    """
    if not isinstance(given, Mapping):
        raise UsageError(f"{tool}: the arguments must be an object, not {json_beginning(given)}")
    found: dict[str, Any] = {}
    for key, value in given.items():
        name = key if key in schema["properties"] else synonyms.get(key, key)
        if value is None or (name not in schema.get("required", ()) and _is_empty(value)):
            continue
        if name in found and found[name] != value:
            raise UsageError(f"{tool}: {key} and {_other(synonyms, name, given, key)} mean the same, but differ")
        found[name] = _without_empty_keys(value, schema["properties"].get(name, {}))
    check_fits(found, schema, tool)
    return found


def _is_empty(value: object) -> bool:
    return value in ([], {}) or (isinstance(value, str) and not value.strip())


def _without_empty_keys(value: Any, schema: Schema) -> Any:
    """Return a value; if it is a list of objects, these are without their empty keys."""
    inner = next((one for one in schema.get("items", {}).get("anyOf", [schema.get("items", {})]) if _known(one)), None)
    if not isinstance(value, list) or inner is None:
        return value
    return [_item(one, inner) if isinstance(one, Mapping) else one for one in value]


def _known(schema: Schema) -> bool:
    return "properties" in schema


def _item(item: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    needed = schema.get("required", ())
    return {key: value for key, value in item.items() if value is not None and (key in needed or not _is_empty(value))}


def _other(synonyms: Mapping[str, str], name: str, given: Mapping[str, Any], key: str) -> str:
    return next(one for one in given if one != key and synonyms.get(one, one) == name)


def check_fits(value: Any, schema: Schema, place: str) -> None:
    """Raise `UsageError` if a value does not fit a schema; the message starts with `place`."""
    problem = first_problem(value, schema, place)
    if problem is not None:
        words, hint = _in_words(problem)
        raise UsageError(words, hint=hint)


def _in_words(problem: Problem) -> tuple[str, str | None]:
    """Return the message for a problem, and the hint: how to correct it."""
    where, keyword, value, schema, detail, nearest = problem
    match keyword:
        case "required":
            return f"{where} lacks {detail!r}", str(schema["properties"][detail].get("description", "")) or None
        case "additionalProperties":
            return f"{where} takes no {detail!r}", f"it takes {', '.join(schema['properties'])}"
        case "anyOf" if nearest is not None and (nearest.where, nearest.keyword) != (where, "type"):
            return _in_words(nearest)
        case "pattern":  # Our schemas have only one: not blank.
            return f"{where} is empty", None
        case "enum":
            wanted = f"be one of {', '.join(map(str, schema['enum']))}"
        case "type" | "anyOf":
            wanted = f"be {_a([kind for branch in schema.get('anyOf', [schema]) for kind in types_in(branch)])}"
        case "minItems" | "maxItems":
            return f"{where} must have {_range(schema, 'minItems', 'maxItems')} items, not {len(value)}", None
        case _:
            wanted = f"be {_range(schema, 'minimum', 'maximum')}"
    return f"{where} must {wanted}, not {json_beginning(value)}", None


def _range(schema: Schema, least: str, most: str) -> str:
    low, high = schema.get(least, 0), schema.get(most)
    return f"at least {low}" if high is None else f"from {low} to {high}"


def _a(kinds: list[str]) -> str:
    return " or ".join(f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}" for kind in kinds)
