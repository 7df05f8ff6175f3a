"""Writes values as TOML, the language of Codex's settings."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any


def toml(value: Any) -> str:
    """Return a value as TOML on one line.

    >>> toml({"args": ["-c", 'echo "a"'], "enabled": False})
    '{"args"=["-c","echo \\\\"a\\\\""],"enabled"=false}'
    """
    match value:
        case Mapping():
            inner = (f"{toml(str(key))}={toml(item)}" for key, item in value.items() if item is not None)
            return f"{{{','.join(inner)}}}"
        case list() | tuple():
            return f"[{','.join(map(toml, value))}]"
        case datetime() | date() | time():
            return value.isoformat()
        case float() if not math.isfinite(value):
            return str(value)
    # JSON's strings, numbers and booleans are valid TOML, except that JSON does not escape DEL in a string.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def document(settings: Mapping[str, Any]) -> str:
    """Return settings as a file.

    >>> print(document({"model": "x", "features": {"apps": False}}), end="")
    "model"="x"
    "features"={"apps"=false}
    """
    return "".join(f"{toml(str(key))}={toml(value)}\n" for key, value in settings.items() if value is not None)
