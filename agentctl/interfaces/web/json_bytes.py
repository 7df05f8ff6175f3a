"""JSON as it is sent: compact UTF-8, and nothing in it that JSON does not have, or that others could not read."""

from __future__ import annotations

import json
from typing import Any

#: What is nested deeper is left out. Much of what is sent comes from files that a worker may have written.
_DEEPEST = 100
_LEFT_OUT = "(nested too deeply)"


def json_bytes(value: Any) -> bytes:
    """Return a value as JSON; NaN and infinities become null, and half characters are replaced."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError):
        text = json.dumps(_fit(value, _DEEPEST), ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def _fit(value: Any, deepest: int) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if not isinstance(value, dict | list | tuple):
        return value
    if deepest == 0:
        return _LEFT_OUT
    if isinstance(value, dict):
        return {key: _fit(item, deepest - 1) for key, item in value.items()}
    return [_fit(item, deepest - 1) for item in value]
