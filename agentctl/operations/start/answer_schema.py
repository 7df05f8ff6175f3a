"""The JSON schema that an agent's final answer has to fit: reads it from a file, and puts it into words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agentctl.adapters.files import storage_errors
from agentctl.domain.text.jsonschema import check_schema
from agentctl.errors import UsageError

_LONGEST = 100_000


def read_schema(given: Mapping[str, Any] | str | None) -> Mapping[str, Any] | None:
    """Return a schema, or the one in a file.

    Raises:
        UsageError: There is no such file, it is not a schema, or it uses keywords that cannot be checked here.
    """
    if given is None:
        return None
    if not isinstance(given, str):
        check_schema(given)
        return dict(given)
    try:
        with storage_errors(given, "read"), open(given, encoding="utf-8-sig") as file:
            text = file.read(_LONGEST + 1)
    except OSError as error:
        raise UsageError(f"cannot read the schema {given}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{given} is not JSON: {error}", hint="a JSON schema is expected") from error
    if len(text) > _LONGEST:
        raise UsageError(f"{given} is too large", hint=f"at most {_LONGEST} characters are read")
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{given} is not JSON: {error}", hint="a JSON schema is expected") from error
    check_schema(schema, given)
    if not isinstance(schema, dict) or not schema:
        raise UsageError(f"{given} asks for nothing", hint='a schema is an object like {"type": "object"}')
    return schema


def ask_for(schema: Mapping[str, Any]) -> str:
    """Return the words that ask for such an answer, for a program that does not support schemas."""
    return f"Answer with nothing but one JSON value that fits this schema:\n{json.dumps(schema, ensure_ascii=False)}"
