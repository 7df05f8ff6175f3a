"""The options of a worker that a Python program starts, besides its work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict


class SpawnOptions(TypedDict, total=False):
    """The options of `agentctl spawn`, under their names in a line of `spawn --batch`."""

    name: str
    cwd: str
    env: Mapping[str, str]
    grace_seconds: float
    priority: int
    after: Sequence[str]
    after_any: bool
    retries: int
    retry_delay_seconds: float
    max_park_seconds: float
    key: str
    reuse: bool
    keep_children: bool
    worktree: bool
    runner: str
    cpus: int
    memory: str
    gpus: str
    time: str
    partition: str
    runner_arg: Sequence[str]
    driver: str
    model: str
    effort: str
    max_turns: int
    max_budget_usd: float
    permissions: str
    output_schema: str


def plain_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given, with sequences as lists and mappings as dicts.

    >>> plain_options({"name": None, "after": ("a", "b")})
    {'after': ['a', 'b']}
    """
    return {key: _plain(value) for key, value in options.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) and not isinstance(value, dict) else value
