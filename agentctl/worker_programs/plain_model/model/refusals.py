"""Decides what a refusal of a server means: for the worker, and for whether the request is sent again."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Self

from agentctl.domain.states import Reason
from agentctl.domain.text.numbers import finite
from agentctl.domain.tree.windows import Window, window_from
from agentctl.drivers.signs import reason_of_words
from agentctl.drivers.values import STATUS_REASONS, object_in, text_in
from agentctl.worker_programs.plain_model.model.answer import AnswerUsage

#: Beyond this a `Retry-After` is the reset of a window, not a pause.
LONG_S = 60.0
_LONGEST_SENTENCE = 600
_STATUSES = {**STATUS_REASONS, 402: Reason.BILLING, 413: Reason.CONTEXT, 503: Reason.OVERLOADED}
_TRANSIENT = frozenset({Reason.RATE_LIMITED, Reason.OVERLOADED})
_LIMIT = re.compile(
    r"(?:maximum context length is|context (?:length|window|size)[^0-9]{0,40}|> )\s*([0-9]{3,9})", re.IGNORECASE
)
_UNIFIED = "anthropic-ratelimit-unified-"
_UNIFIED_NAMES = {"5h": "five_hour", "7d": "seven_day"}
_SPAN = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")


class Failure(Exception):
    """A request that brought no answer.

    Args:
        retry_after_s: How long the server wants to be left alone; None where it says nothing.
        limit: The longest conversation that the model can read, in tokens, where the server says so.
    """

    def __init__(
        self, reason: Reason, message: str, *, is_transient: bool = False, retry_after_s: float | None = None,
        windows: tuple[Window, ...] = (), limit: int | None = None, refused: str = "",
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.reason, self.message, self.is_transient = reason, message, is_transient
        self.retry_after_s, self.windows, self.limit = retry_after_s, windows, limit
        #: The server's own words, for a request with fields that it does not know.
        self.refused = refused
        #: What the answer cost that was none.
        self.usage: AnswerUsage | None = None

    def with_usage(self, usage: AnswerUsage | None) -> Self:
        """Return this, of an answer that cost something."""
        self.usage = usage
        return self


def failure_of(status: int, headers: Mapping[str, str], body: bytes, now: float, *, who: str = "the server") -> Failure:
    """Return what a refusal means.

    Args:
        headers: By lower-case names.
        now: Seconds since 1970.
        who: Who has refused it, in words.

    >>> failure_of(402, {}, b'{"error": {"message": "Insufficient Balance"}}', 0.0).reason
    <Reason.BILLING: 'billing'>
    """
    code, sentence = said_in(body)
    reason = failure_reason(status, f"{code} {sentence}")
    after = retry_after_in(headers, now)
    windows = llm_windows(headers)
    if reason is Reason.RATE_LIMITED and after is not None and after > LONG_S and not _is_used_up(windows):
        windows = (*windows, Window("requests", 100.0, now + after, is_rejected=True))
    return Failure(
        reason, _message(who, status, sentence or code),
        is_transient=reason in _TRANSIENT or (reason is Reason.MODEL_ERROR and (status >= 500 or status in {408, 409})),
        retry_after_s=after, windows=tuple(windows), limit=limit_in(sentence),
        refused=f"{status} {code} {sentence}" if status in {400, 422} else "",
    )  # fmt: skip


def failure_in_stream(error: Any, now: float) -> Failure:
    """Return what an error in the middle of a stream means."""
    status = object_in(error).get("code")
    return failure_of(status if type(status) is int and 400 <= status < 600 else 500, {}, _as_body(error), now)


def _as_body(error: Any) -> bytes:
    return json.dumps({"error": error}).encode()


def failure_reason(status: int, words: str) -> Reason:
    """Return the reason by the error's own words, else by its status.

    >>> failure_reason(429, "insufficient_quota"), failure_reason(429, ""), failure_reason(404, "no such model")
    (<Reason.BILLING: 'billing'>, <Reason.RATE_LIMITED: 'rate_limited'>, <Reason.MODEL_ERROR: 'model_error'>)
    """
    found = reason_of_words(words)
    if found is Reason.TRUNCATED:
        found = None  # A refusal only names the limit.
    if found is Reason.BILLING:
        return found
    if status in _STATUSES and not (status == 413 and found):
        return _STATUSES[status]
    return found or Reason.MODEL_ERROR


def said_in(body: bytes) -> tuple[str, str]:
    """Return the code and the sentence in the body of a refusal, in any of its usual forms.

    >>> said_in(b'{"error": {"type": "rate_limit_error", "message": "Slow down"}}')
    ('rate_limit_error', 'Slow down')
    """
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return "", " ".join(body.decode("utf-8", "replace").split())[:_LONGEST_SENTENCE]
    if isinstance(value, list) and value:
        value = value[0]
    top = object_in(value)
    error = top.get("error", top)
    if isinstance(error, str):
        return "", error[:_LONGEST_SENTENCE]
    error = object_in(error)
    words = [text_in(error.get(name)) for name in ("code", "type", "status")]
    inner = object_in(error.get("metadata")).get("raw")
    sentence = text_in(error.get("message")) or text_in(error.get("detail")) or text_in(top.get("message"))
    sentence = f"{sentence}: {inner}" if isinstance(inner, str) and inner else sentence
    return " ".join(dict.fromkeys(filter(None, words)))[:200], " ".join(sentence.split())[:_LONGEST_SENTENCE]


def _message(who: str, status: int, sentence: str) -> str:
    return f"{who} answered {status}: {sentence}" if sentence else f"{who} answered {status}"


def retry_after_in(headers: Mapping[str, str], now: float) -> float | None:
    """Return how many seconds to wait: as seconds, milliseconds, a date, or a span until the limit is reset.

    >>> retry_after_in({"retry-after": "7"}, 0), retry_after_in({"x-ratelimit-reset-requests": "1m6s"}, 0)
    (7.0, 66.0)
    """
    milliseconds = _seconds(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    given = headers.get("retry-after", "")
    if (seconds := _seconds(given)) is not None:
        return seconds
    if given:
        try:
            return max(0.0, parsedate_to_datetime(given).timestamp() - now)
        except (ValueError, TypeError, OverflowError):
            pass  # It is not a date either.
    spans = [headers.get(f"x-ratelimit-reset-{kind}", "") for kind in ("requests", "tokens")]
    found = [span for text in spans if (span := _span(text)) is not None]
    return max(found) if found and headers.get("x-ratelimit-remaining-requests", "0") == "0" else None


def _seconds(text: str) -> float | None:
    try:
        number = finite(float(text))
    except ValueError:
        return None
    return number if number is not None and number >= 0 else None


def _span(text: str) -> float | None:
    found = _SPAN.fullmatch(text) if text else None
    if found is None:
        return None
    hours, minutes, seconds, milliseconds = (float(part or 0) for part in found.groups())
    return hours * 3600 + minutes * 60 + seconds + milliseconds / 1000


def llm_windows(headers: Mapping[str, str]) -> tuple[Window, ...]:
    """Return the usage windows that an answer's headers tell of.

    >>> llm_windows({"anthropic-ratelimit-unified-5h-utilization": "0.5", "anthropic-ratelimit-unified-5h-reset": "9"})
    (Window(name='five_hour', used_percent=50.0, resets_at=9.0, is_rejected=False),)
    """
    found = []
    for short, name in _UNIFIED_NAMES.items():
        head = f"{_UNIFIED}{short}-"
        used, reset = _seconds(headers.get(f"{head}utilization", "")), _seconds(headers.get(f"{head}reset", ""))
        is_rejected = headers.get(f"{head}status") == "rejected"
        if used is None and reset is None:
            continue
        window = window_from(name, None if used is None else used * 100, reset, is_rejected=is_rejected)
        if window is not None:
            found.append(window)
    return tuple(found)


def _is_used_up(windows: tuple[Window, ...]) -> bool:
    return any(window.is_rejected for window in windows)


def limit_in(sentence: str) -> int | None:
    """Return the longest conversation, in tokens, that an error names.

    >>> limit_in("This model's maximum context length is 8192 tokens. However, ...")
    8192
    """
    found = _LIMIT.search(sentence)
    return int(found[1]) if found else None
