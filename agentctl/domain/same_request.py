"""Whether two requests with one key are the same: by what was said in them, part by part.

Of each part a digest is kept, so that an error can name what differs and no record grows with a prompt. Of an
environment only the names count: its values are kept nowhere on disk, and a digest of a short one would tell it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: What is asked for at all: two requests of different kinds differ in nothing else.
KIND = "kind"
_ENVIRONMENT = "env"
_BYTES = 8


def digests_of(kind: str, said: Mapping[str, Any]) -> dict[str, str]:
    """Return the parts of a request as they are kept; what says nothing is left out."""
    parts = {name: value for name, value in said.items() if _says_something(value)}
    if _ENVIRONMENT in parts:
        parts[_ENVIRONMENT] = sorted(parts[_ENVIRONMENT])
    return {KIND: kind, **{name: _digest(value) for name, value in parts.items()}}


def _says_something(value: Any) -> bool:
    """Return whether a part is there at all: 0 is a number like others, as a time of grace for example."""
    return value is not None and value is not False and value not in ("", [], (), {})


def _digest(value: Any) -> str:
    import hashlib  # 6 ms, with OpenSSL: only for keys.
    import json

    # One that asks for 60 seconds and one that asks for 60.0 are the same.
    same = json.loads(json.dumps(value, default=dict), parse_float=_number)
    text = json.dumps(same, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=_BYTES).hexdigest()


def _number(text: str) -> float | int:
    number = float(text)
    return int(number) if number.is_integer() else number


def differing_parts(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return what two requests differ in.

    >>> differing_parts(digests_of("start", {"argv": ["a"]}), digests_of("start", {"argv": ["b"], "cwd": "/"}))
    ['argv', 'cwd']
    >>> differing_parts(digests_of("start", {"argv": ["a"]}), digests_of("message", {"text": "a"}))
    ['kind']
    >>> differing_parts(digests_of("start", {"timeout_seconds": 60}), digests_of("start", {"timeout_seconds": 60.0}))
    []
    """
    if before.get(KIND) != now.get(KIND):
        return [KIND]
    return sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
