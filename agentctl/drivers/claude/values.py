"""Reads values that Claude Code prints: whatever is not of the expected kind counts as empty."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from agentctl.lean import NamedTuple

#: Longer texts and arguments are cut in the activity; the raw output has the whole.
_LONGEST = 4000
#: The fields of `assistant`, `user` and `result` lines in the version that was tested.
FIELDS = frozenset(
    """
    aborted agent_id api_error api_error_params api_error_status api_error_type begun_message_ids deferred_tool_use
    duration_api_ms duration_ms error errors fast_mode_disabled_reason fast_mode_state first_content_frame_ms
    first_request_cache_creation_input_tokens first_request_cache_read_input_tokens first_request_input_tokens
    interrupted_by_shutdown isReplay isSynthetic is_api_error_message is_error message modelUsage
    model_usage_since_last_result num_turns origin parent_tool_use_id permission_denials queued_turn_count
    refused_message_id request_id request_sent_wall_ms restored_rewind result result_index runner_exit safety_stops
    session_id startup_failure_reason stop_reason structured_output subagent_stats subagent_type subtype
    task_description terminal_reason thinking_display thinking_duration_ms time_to_request_ms timestamp
    tool_result_meta tool_use_meta tool_use_result total_cost_usd ttft_ms ttft_stream_ms type usage
    user_message_uuid user_message_uuids uuid
    """.split()  # noqa: SIM905 - one name a line would fill a page
)
#: More than that is no amount of money.
_RICHEST = 1e12


def text_in(value: Any) -> str:
    """Return a string; anything else counts as an empty one."""
    return value if isinstance(value, str) else ""


def object_in(value: Any) -> dict[str, Any]:
    """Return an object; anything else counts as an empty one."""
    return value if isinstance(value, dict) else {}


def list_in(value: Any) -> list[Any]:
    """Return a list; anything else counts as an empty one."""
    return value if isinstance(value, list) else []


def bounded(text: str) -> str:
    """Return the beginning of a text, and how much was cut."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} [cut: {len(text)} characters]"


def bounded_values(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments with the beginnings of what is too long in them."""
    return {key: _bounded_value(value) for key, value in arguments.items()}


def _bounded_value(value: Any) -> Any:
    if isinstance(value, str):
        return bounded(value)
    if not isinstance(value, (dict, list)):
        return value
    try:
        text = json.dumps(value)
    except (RecursionError, ValueError):
        return "[cut: nested too deeply]"
    return value if len(text) <= _LONGEST else bounded(text)


class Tokens(NamedTuple):
    """A consumption; `input` is what was not read from the cache."""

    input: int = 0
    output: int = 0
    cached: int = 0

    def plus(self, other: Tokens) -> Tokens:
        """Return both together."""
        return Tokens(*(one + two for one, two in zip(self, other, strict=True)))

    def beyond(self, other: Tokens) -> Tokens:
        """Return what this has more than another."""
        return Tokens(*(max(0, one - two) for one, two in zip(self, other, strict=True)))


def tokens_of(usage: Mapping[str, Any]) -> Tokens:
    """Return the tokens of a message or a result (`input_tokens`), or of `modelUsage` (`inputTokens`)."""
    return Tokens(
        _count(usage, "input_tokens", "inputTokens")
        + _count(usage, "cache_creation_input_tokens", "cacheCreationInputTokens"),
        _count(usage, "output_tokens", "outputTokens"),
        _count(usage, "cache_read_input_tokens", "cacheReadInputTokens"),
    )


def _count(usage: Mapping[str, Any], *names: str) -> int:
    found = [usage[name] for name in names if type(usage.get(name)) is int]
    return max(0, *found) if found else 0


class Spent(NamedTuple):
    """What a result says that was used: tokens, and US dollars where it says so."""

    tokens: Tokens = Tokens()
    cost_usd: float | None = None

    def plus(self, other: Spent) -> Spent:
        """Return both together."""
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Spent(self.tokens.plus(other.tokens), sum(costs) if costs else None)

    def beyond(self, other: Spent) -> Spent:
        """Return what this has more than another; of money nothing where this does not tell of it."""
        cost = None if self.cost_usd is None else max(0.0, self.cost_usd - (other.cost_usd or 0.0))
        return Spent(self.tokens.beyond(other.tokens), cost)


def spent_of(models: Iterable[Any]) -> Spent:
    """Return what the entries of a `modelUsage` come to, one for each model."""
    spent = Spent()
    for model in map(object_in, models):
        spent = spent.plus(Spent(tokens_of(model), money_in(model.get("costUSD"))))
    return spent


def money_in(value: Any) -> float | None:
    """Return an amount of money; None where it is none."""
    is_amount = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_amount and 0 <= value < _RICHEST else None


class Meter:
    """Adds up what this process used; the program's own totals go on over a resumed session.

    Args:
        is_fresh: The session begins with this process.
    """

    def __init__(self, *, is_fresh: bool) -> None:
        self.spent = Spent()
        self._is_fresh = is_fresh
        self._total = Spent()

    def take(self, result: Mapping[str, Any]) -> Spent:
        """Take a result; return what was used since the last one, sub-agents included where the program tells it."""
        since, models = result.get("model_usage_since_last_result"), result.get("modelUsage")
        if isinstance(since, dict):
            new = spent_of(since.values())
        elif self._is_fresh and isinstance(models, dict):
            total = spent_of(models.values())
            new = total.beyond(self._total)
            self._total = total if total.cost_usd is not None else total._replace(cost_usd=self._total.cost_usd)
        else:
            new = Spent(tokens_of(object_in(result.get("usage"))))
        self.spent = self.spent.plus(new)
        return new
