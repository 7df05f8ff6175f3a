"""Checks each JSON document that a command prints in a test against the schema that its function declares.

The schemas that users get allow further keys, as these are only ever added. Here a key that is not declared fails.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from agentctl.adapters.taskdir import Root
from agentctl.interfaces.commands.model.catalogue import VERBS, command_named
from agentctl.interfaces.commands.model.command_model import Family
from agentctl.interfaces.commands.programs.served_commands import served_commands
from agentctl.interfaces.web.document_schemas import declared_type, schemas_of
from agentctl.interfaces.web.openapi import document_of
from agentctl.interfaces.web.own_endpoints import OwnEndpoints
from agentctl.interfaces.web.several_endpoints import SeveralEndpoints
from agentctl.tools.subtasks import SUBTASK_ANSWERS, SUBTASK_PREFIX
from tests.commands import all_commands
from tests.tool_schemas import TOOLS, made


def check_answer(argv: Sequence[str], document: Any) -> None:
    """Fail if a command line has printed a document that is not of the type which its command declares."""
    words = command_words(argv)
    if words is None or "--json" not in argv:
        return
    schema = schema_of(words)
    assert schema is not None, f"{words} declares no document, and prints one: {str(document)[:500]}"
    _check(schema, document, words)


def command_words(argv: Sequence[str]) -> str | None:
    """Return the words of the command in a line that begins with `agentctl`; None if there is none, or elsewhere."""
    words = [str(word) for word in argv[1:]]
    if not words or words[0] not in VERBS:
        return None
    found = command_named(words[0])
    if not isinstance(found, Family):
        return words[0]
    below = found.command(words[1]) if len(words) > 1 else None
    below = below or found.without
    return None if below is None else f"{words[0]} {below.name}"


def check_response(method: str, target: str, document: Any) -> None:
    """Fail if a server has answered with another document than the description of its interface says."""
    path = target.partition("?")[0]
    schema = next((one for pattern, one in _responses()[method.lower()] if pattern.fullmatch(path)), None)
    if schema is not None:
        _check(schema, document, f"{method} {path}")


def check_tool_answer(tool: str, answer: Any) -> None:
    """Fail if a tool has answered what it does not declare."""
    declared = SUBTASK_ANSWERS if tool.startswith(SUBTASK_PREFIX) else _answers_of_tools().get(tool)
    if declared is not None and isinstance(answer, dict):
        _check(_tool_schemas()[declared], answer, f"the tool {tool}")


@cache
def _answers_of_tools() -> dict[str, str | None]:
    return {name: one.answers for one in TOOLS for name in (one.name, *one.other_names)}


@cache
def _tool_schemas() -> dict[str, Any]:
    return {declared: _closed(schema) for declared, schema in made().items()}


@cache
def _responses() -> dict[str, list[tuple[re.Pattern[str], dict[str, Any]]]]:
    """Return the patterns of paths, by their method, each with the schema of what is answered there."""
    root = Root("/nowhere")
    own = OwnEndpoints(root, force=False, url="", is_read_only=False).all()
    own += SeveralEndpoints(root, force=False).all()
    described = document_of([*served_commands(root, force=False), *own], [])
    parts = {
        "components": {"schemas": {name: _closed(one) for name, one in described["components"]["schemas"].items()}}
    }
    found: dict[str, list[tuple[re.Pattern[str], dict[str, Any]]]] = {"get": [], "post": []}
    for path, operations in described["paths"].items():
        pattern = re.compile(re.sub(r"\\{[a-z_]+\\}", "[^/]+", re.escape(path)))
        for method, operation in operations.items():
            content = operation["responses"]["200"]["content"].get("application/json", {})
            if "schema" in content:
                found[method].append((pattern, {**_closed(content["schema"]), **parts}))
    return found


def _check(schema: dict[str, Any], document: Any, by: str) -> None:
    error = best_match(Draft202012Validator(schema).iter_errors(document))
    assert error is None, f"{by} answers what it does not declare: {error.json_path}: {error.message[:1000]}"


@cache
def schema_of(words: str) -> dict[str, Any] | None:
    """Return the schema of the document of a command, in which no further key is allowed."""
    schema = _schemas()[0].get(words)
    return None if schema is None else {**schema, "components": {"schemas": _schemas()[1]}}


@cache
def _schemas() -> tuple[dict[str, Any], dict[str, Any]]:
    declared = {words: one.carry_out.__annotations__["return"] for words, one in all_commands().items()}
    types = {words: kind for words, text in declared.items() if (kind := declared_type(text)) is not None}
    found, parts = schemas_of(types)
    return {words: _closed(one) for words, one in found.items()}, {name: _closed(one) for name, one in parts.items()}


def _closed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _closed(one) for key, one in schema.items()}
    if found.get("type") == "object" and "properties" in found:
        found.setdefault("additionalProperties", False)
    return found
