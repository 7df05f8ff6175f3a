"""What a model has answered, in one form for all APIs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agentctl.domain.text.nesting import is_too_deep, may_be_too_deep
from agentctl.drivers.values import count_in, money_in, object_in
from agentctl.lean import NamedTuple

#: Why the model stopped, in one vocabulary.
STOP, LENGTH, REFUSED, OVERLOADED = "stop", "length", "refused", "overloaded"
#: No honest answer has more calls: those beyond are left out.
MOST_CALLS = 100
_THINK, _THOUGHT = "<think>", "</think>"


class ToolCall(NamedTuple):
    """A tool that the model calls."""

    id: str
    name: str
    #: None where what the model wrote is not a JSON object.
    arguments: Mapping[str, Any] | None
    #: What it wrote, if that is not an object.
    raw: str = ""
    #: What the server wants to get back with the call, unread.
    extra: Mapping[str, Any] = {}


class AnswerUsage(NamedTuple):
    """Tokens of one answer; `input` excludes those that were read from a cache. `cost` is in US dollars."""

    input: int = 0
    output: int = 0
    cached: int = 0
    cost: float | None = None

    @property
    def total(self) -> int:
        """The length of the conversation with this answer."""
        return self.input + self.output + self.cached


class ModelAnswer(NamedTuple):
    """A message of the model. Without `finish` its stream broke off."""

    text: str = ""
    thought: str = ""
    calls: Sequence[ToolCall] = ()
    finish: str | None = None
    usage: AnswerUsage | None = None
    #: Thoughts that only the server can read, as it wants to get them back.
    sealed: Sequence[Mapping[str, Any]] = ()


class ServerSaidError(Exception):
    """The server reports an error in the middle of an answer."""

    def __init__(self, error: Any) -> None:
        super().__init__("the server reports an error")
        self.error = error


def tool_call(call_id: str, name: str, arguments: Any, extra: Mapping[str, Any] | None = None) -> ToolCall:
    """Return a call, its arguments read: a text of JSON, or an object (some servers); nothing at all is `{}`.

    >>> tool_call("1", "find", '{"pattern": "*"}').arguments, tool_call("1", "find", "{").raw
    ({'pattern': '*'}, '{')
    """
    if isinstance(arguments, Mapping):
        return ToolCall(call_id, name, dict(arguments), extra=extra or {})
    text = arguments if isinstance(arguments, str) else ""
    if not text.strip():
        return ToolCall(call_id, name, {}, extra=extra or {})
    value = json_answer(text.encode("utf-8", "replace"))
    if isinstance(value, dict):
        return ToolCall(call_id, name, value, extra=extra or {})
    return ToolCall(call_id, name, None, text, extra or {})


def json_answer(data: bytes) -> Any:
    """Return the JSON value in what a server sent; None where it is not JSON, or nested too deep to be sent back."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return None if may_be_too_deep(data) and is_too_deep(value) else value


def without_inline_thought(text: str, thought: str) -> tuple[str, str]:
    """Return text and thought, where a model has put its thought into its text.

    >>> without_inline_thought("<think>hm</think>yes", "")
    ('yes', 'hm')
    """
    if not text.lstrip().startswith(_THINK) or _THOUGHT not in text:
        return text, thought
    inner, _, rest = text.lstrip()[len(_THINK) :].partition(_THOUGHT)
    return rest.lstrip(), thought + inner.strip()


def chat_usage(value: Any) -> AnswerUsage | None:
    """Return the `usage` of a chat completion; None where it has none."""
    usage = object_in(value)
    if not usage:
        return None
    details = object_in(usage.get("prompt_tokens_details"))
    cached = count_in(details.get("cached_tokens")) or count_in(usage.get("prompt_cache_hit_tokens"))
    prompt = count_in(usage.get("prompt_tokens"))
    cached = min(cached, prompt)
    return AnswerUsage(prompt - cached, count_in(usage.get("completion_tokens")), cached, money_in(usage.get("cost")))
