"""What Codex's errors mean: the reason of an ending."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agentctl.domain.states import Reason
from agentctl.drivers.codex.items import as_dict, as_text

#: How a turn ended: the reason and the message of an unhappy end, else None and None.
Ending = tuple[Reason | None, str | None]
INTERRUPTED: Ending = (Reason.SIGNAL, "it was interrupted")
#: `codexErrorInfo`, where it is a word. What is not here, `other` above all, is told by the message.
_BY_WORD = {
    "unauthorized": Reason.AUTH,
    "usageLimitExceeded": Reason.RATE_LIMITED,
    "rateLimitExceeded": Reason.RATE_LIMITED,
    "sessionBudgetExceeded": Reason.BUDGET,
    "contextWindowExceeded": Reason.TRUNCATED,
    "cyberPolicy": Reason.REFUSED,
    "misalignmentPolicyViolation": Reason.REFUSED,
    "inferenceHookDenied": Reason.REFUSED,
    "tooManyDenials": Reason.PERMISSION_DENIED,
}
_AUTH_STATUS, _RATE_STATUS = frozenset({401, 403}), 429
#: Said of a key or a login that is missing or was refused; on stderr too.
_AUTH = re.compile(
    r"missing environment variable|not logged in|unauthorized|invalid[ _]api[ _]key|incorrect api key"
    r"|(?:log|sign) ?in again|refresh token|token (?:has )?expired",
    re.IGNORECASE,
)
_RATE = re.compile(r"too many requests|rate limit|usage limit|quota", re.IGNORECASE)
#: Nothing was answered at all: no stream was cut.
_UNREACHED = re.compile(r"error sending request|connection refused|dns error|error trying to connect", re.IGNORECASE)
_CUT = re.compile(r"stream (?:disconnected|closed)|idle timeout waiting for sse", re.IGNORECASE)
_SIGNS = (
    (_AUTH, Reason.AUTH),
    (_RATE, Reason.RATE_LIMITED),
    (_UNREACHED, Reason.MODEL_ERROR),
    (_CUT, Reason.TRUNCATED),
)
_STATUS = re.compile(r"status:? (\d{3})\b")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
#: What stderr says that explains no ending.
_IDLE_WORDS = re.compile(
    r"could not create PATH aliases|could not find bubblewrap|tools::router|^\s*$"
    r"|^reading (?:additional input|prompt) from stdin|^stack backtrace:|^\d+: |^at \S+:\d+",
    re.IGNORECASE,
)


def reason_of(error: Mapping[str, Any]) -> Reason:
    """Return why a turn failed, or is tried again.

    >>> reason_of({"message": "Missing environment variable: `KEY`.", "codexErrorInfo": "other"}).value
    'auth'
    >>> reason_of({"message": "...", "codexErrorInfo": {"responseStreamDisconnected": {"httpStatusCode": 401}}}).value
    'auth'
    """
    info = error.get("codexErrorInfo")
    if isinstance(info, str) and info in _BY_WORD:
        return _BY_WORD[info]
    text = message_of(error)
    status = _http_status(info) or _status_in(text)
    if status is not None:
        return _of_status(status)
    return _of_text(text) or Reason.MODEL_ERROR


def reason_in(text: str) -> Reason | None:
    """Return the reason that a line of free text tells, of those that free text can tell."""
    status = _status_in(text)
    return _of_status(status) if status is not None else _of_text(text)


def message_of(error: Mapping[str, Any]) -> str:
    """Return what a person reads of an error."""
    message, details = as_text(error.get("message")), as_text(error.get("additionalDetails"))
    return f"{message}: {details}" if message and details else message or details or "Codex told no cause"


def telling(line: bytes) -> str | None:
    """Return a line of stderr without its colours; None where it explains nothing."""
    text = _COLOURS.sub("", line.decode("utf-8", "replace")).strip()
    return None if _IDLE_WORDS.search(text) else text


def early_end(code: int, said: str, retried: Mapping[str, Any] | None) -> Ending:
    """Return why a Codex ended that had not told its end.

    Args:
        said: What stderr told last.
        retried: The error after which it was trying again.
    """
    if retried is not None:
        return reason_of(retried), message_of(retried)
    if code < 0:
        return Reason.SIGNAL, f"signal {-code} ended Codex. {said}".strip()
    if (reason := reason_in(said)) is Reason.AUTH:
        return reason, said
    if code > 0:
        return Reason.EXIT_CODE, f"Codex ended with exit code {code}. {said}".strip()
    return Reason.TRUNCATED, f"Codex ended before its turn did. {said}".strip()


def _of_status(status: int) -> Reason:
    if status in _AUTH_STATUS:
        return Reason.AUTH
    return Reason.RATE_LIMITED if status == _RATE_STATUS else Reason.MODEL_ERROR


def _of_text(text: str) -> Reason | None:
    return next((reason for pattern, reason in _SIGNS if pattern.search(text)), None)


def _http_status(info: Any) -> int | None:
    for value in as_dict(info).values():
        status = as_dict(value).get("httpStatusCode")
        if isinstance(status, int):
            return status
    return None


def _status_in(text: str) -> int | None:
    found = _STATUS.search(text)
    return int(found.group(1)) if found else None
