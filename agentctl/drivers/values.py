"""Reads values that agent programs print: a value of the wrong type counts as empty."""

from __future__ import annotations

import json
import signal
from collections.abc import Collection, Mapping
from typing import Any

from agentctl.domain.states import Reason
from agentctl.domain.text.plaintext import beginning

#: Longer texts are cut in the activity; the raw output is complete.
LONGEST = 4000
#: Python writes no number of more than 4,300 digits: sums of smaller ones must not become one.
_MOST = 1 << 53
_RICHEST = 1e9
#: What the HTTP status of a provider's answer means for the worker.
STATUS_REASONS = {401: Reason.AUTH, 403: Reason.AUTH, 429: Reason.RATE_LIMITED, 529: Reason.OVERLOADED}
#: How a shell, and a program that catches a signal, report it: as 128 plus its number.
_SIGNAL_CODES = {128 + number: int(number) for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)}


def text_in(value: Any) -> str:
    """Return a string; anything else counts as an empty one."""
    return value if isinstance(value, str) else ""


def object_in(value: Any) -> dict[str, Any]:
    """Return an object; anything else counts as an empty one."""
    return value if isinstance(value, dict) else {}


def list_in(value: Any) -> list[Any]:
    """Return a list; anything else counts as an empty one."""
    return value if isinstance(value, list) else []


def count_in(value: Any) -> int:
    """Return a positive whole number, one that is beyond all counting as the largest; anything else counts as 0."""
    return min(value, _MOST) if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def money_in(value: Any) -> float | None:
    """Return an amount of US dollars; None for anything else, and for one that nobody pays."""
    is_amount = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_amount and 0 <= value < _RICHEST else None


def bounded_text(text: str) -> str:
    """Return a text as the activity keeps it: only the beginning of a long one."""
    return beginning(text, LONGEST)


def bounded_values(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call as the activity keeps them, each one cut if it is long."""
    return {key: _bounded_value(value) for key, value in arguments.items()}


def sub_agent_detail(arguments: Mapping[str, Any], besides: Collection[str]) -> dict[str, Any] | None:
    """Return the arguments of the call of a sub-agent as its row keeps them.

    Args:
        besides: Those that are its type and its name, if they are texts.

    >>> sub_agent_detail({"subagent_type": "explore", "prompt": "look", "model": "small"}, ["subagent_type"])
    {'prompt': 'look', 'model': 'small'}
    """
    left = {key: value for key, value in arguments.items() if key not in besides or not isinstance(value, str)}
    return bounded_values(left) or None


def _bounded_value(value: Any) -> Any:
    if isinstance(value, str):
        return bounded_text(value)
    if not isinstance(value, (dict, list)):
        return value
    try:
        text = json.dumps(value)
    except (RecursionError, ValueError):
        return "[cut: nested too deeply]"
    return value if len(text) <= LONGEST else bounded_text(text)


def parse_line(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object in a line; None if the line is anything else."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def line_of(value: Mapping[str, Any]) -> bytes:
    """Return an object as a line of JSON."""
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def signal_in(code: int) -> int | None:
    """Return the signal that an exit code reports; None if it reports none.

    >>> signal_in(-9), signal_in(143), signal_in(1)
    (9, 15, None)
    """
    return -code if code < 0 else _SIGNAL_CODES.get(code)
