"""JSON schemas of the documents that commands and endpoints show, made from the types that their functions declare.

Loading this takes a while: it is for what describes the interface, and for nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pkgutil import walk_packages
from typing import Any, Literal

from pydantic import TypeAdapter

from agentctl.domain import documents

_MODE: Literal["serialization"] = "serialization"
#: Where a document of OpenAPI has the schemas that others refer to.
_COMPONENTS = "#/components/schemas/{model}"


class _Document:
    """`Shown[X]`, `Showing[X]` and `Carried[X]`, in an annotation that is evaluated: X."""

    def __class_getitem__(cls, kind: Any) -> Any:
        return kind


def _names() -> dict[str, Any]:
    found: dict[str, Any] = {"Any": Any, "Iterable": Iterable, "Mapping": Mapping, "Sequence": Sequence}
    for module in walk_packages(documents.__path__, f"{documents.__name__}."):
        found |= vars(import_module(module.name))
    return found | dict.fromkeys(("Shown", "Showing", "Carried"), _Document)


#: What an annotation may name -> what it stands for.
NAMES = _names()


def declared_type(annotation: str) -> Any:
    """Return the type of a document by an annotation such as `Shown[list[TaskRow]]`; None if there is no document.

    A command that prints one document for each line shows several of that type.
    """
    found = eval(annotation, NAMES)  # noqa: S307 - our own annotations
    return None if found in (None, int, _Document) else found


def schemas_of(types: Mapping[str, Any], *, template: str = _COMPONENTS) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a JSON schema for each of some types, and the schemas that these refer to.

    Args:
        types: Key -> type.
        template: How a schema refers to another one, with `{model}` for its name.

    Returns:
        Key -> schema; and name -> schema.
    """
    adapters = [(key, _MODE, TypeAdapter(kind)) for key, kind in types.items()]
    found, rest = TypeAdapter.json_schemas(adapters, ref_template=template)
    named = {name: _without_titles(schema) for name, schema in rest.get("$defs", {}).items()}
    return {key: _without_titles(schema) for (key, _), schema in found.items()}, named


def _without_titles(schema: Any) -> Any:
    """Return a schema without the titles that pydantic makes of keys: they say nothing that the keys do not."""
    if isinstance(schema, list):
        return [_without_titles(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: one for key, one in schema.items() if key != "title" or not isinstance(one, str)}
    return {key: _without_titles(one) for key, one in kept.items()}
