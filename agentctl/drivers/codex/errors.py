"""What Codex's errors mean: the reason of an ending."""

from __future__ import annotations

import contextlib
import json
import re
import signal
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
    "contextWindowExceeded": Reason.CONTEXT,
    "serverOverloaded": Reason.OVERLOADED,
    "cyberPolicy": Reason.REFUSED,
    "misalignmentPolicyViolation": Reason.REFUSED,
    "inferenceHookDenied": Reason.REFUSED,
    "tooManyDenials": Reason.PERMISSION_DENIED,
}
_STATUSES = {401: Reason.AUTH, 403: Reason.AUTH, 429: Reason.RATE_LIMITED, 529: Reason.OVERLOADED}
#: Said of a key or a login that is missing or was refused; on stderr too.
_AUTH = re.compile(
    r"missing environment variable|not logged in|unauthorized|invalid[ _]api[ _]key|incorrect api key"
    r"|(?:log|sign) ?in again|refresh token|token (?:has )?expired",
    re.IGNORECASE,
)
#: Said with the same status as a rate limit, which ends by itself; this does not.
_BILLING = re.compile(
    r"quota exceeded|insufficient_quota|exceeded your current quota|billing|credit balance"
    r"|out of credits|spend cap|to use codex with your chatgpt plan",
    re.IGNORECASE,
)
_RATE = re.compile(r"too many requests|rate limit|usage limit|quota", re.IGNORECASE)
_OVERLOADED = re.compile(r"overloaded", re.IGNORECASE)
_CONTEXT = re.compile(r"ran out of room in the model's context|context window|context_length_exceeded", re.IGNORECASE)
#: Nothing was answered at all: no stream was cut.
_UNREACHED = re.compile(r"error sending request|connection refused|dns error|error trying to connect", re.IGNORECASE)
_CUT = re.compile(r"max_output_tokens|stream (?:disconnected|closed)|idle timeout waiting for sse", re.IGNORECASE)
_SIGNS = (
    (_AUTH, Reason.AUTH),
    (_BILLING, Reason.BILLING),
    (_OVERLOADED, Reason.OVERLOADED),
    (_CONTEXT, Reason.CONTEXT),
    (_RATE, Reason.RATE_LIMITED),
    (_UNREACHED, Reason.MODEL_ERROR),
    (_CUT, Reason.TRUNCATED),
)
#: How a shell, and a program that catches a signal, tell of it: 128 and its number.
_TOLD_SIGNALS = {128 + number: number for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)}
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
    info, text = error.get("codexErrorInfo"), message_of(error)
    if _BILLING.search(text):
        return Reason.BILLING  # Whatever else is told with it: a status of a rate limit, a used up window.
    if isinstance(info, str) and info in _BY_WORD:
        return _BY_WORD[info]
    status = _http_status(info) or _status_in(text)
    return (_STATUSES.get(status) if status else None) or _of_text(text) or Reason.MODEL_ERROR


def reason_in(text: str) -> Reason | None:
    """Return the reason that a line of free text tells, of those that free text can tell."""
    status = _status_in(text)
    if _BILLING.search(text) or status is None:
        return _of_text(text)
    return _STATUSES.get(status) or _of_text(text) or Reason.MODEL_ERROR


def message_of(error: Mapping[str, Any]) -> str:
    """Return what a person reads of an error."""
    message, details = _sentence(as_text(error.get("message"))), as_text(error.get("additionalDetails"))
    return f"{message}: {details}" if message and details else message or details or "Codex told no cause"


def _sentence(message: str) -> str:
    """Return the provider's own sentence where Codex passes on the whole body of its answer."""
    if message.startswith("{"):
        with contextlib.suppress(ValueError, RecursionError):
            return as_text(as_dict(as_dict(json.loads(message)).get("error")).get("message")) or message
    return message


def telling(line: bytes) -> str | None:
    """Return a line of stderr without its colours; None where it explains nothing."""
    text = _COLOURS.sub("", line.decode("utf-8", "replace")).strip()
    return None if _IDLE_WORDS.search(text) else text


def early_end(
    code: int, said: str, retried: Mapping[str, Any] | None, *, has_begun: bool, is_server: bool = False
) -> Ending:
    """Return why a Codex ended that had not told its end.

    Args:
        said: What stderr told last.
        retried: The error after which it was trying again.
        has_begun: It had opened its thread.
        is_server: It is the app-server, which leaves by itself, with 0, only where somebody asks it to.
    """
    if retried is not None:
        return reason_of(retried), message_of(retried)
    if code < 0 or code in _TOLD_SIGNALS:
        return Reason.SIGNAL, f"signal {_TOLD_SIGNALS.get(code, -code)} ended Codex. {said}".strip()
    if (reason := reason_in(said)) is Reason.AUTH:
        return reason, said
    if not has_begun:
        return Reason.NOT_STARTED, f"Codex ended before it began, with exit code {code}. {said}".strip()
    if code > 0:
        return Reason.EXIT_CODE, f"Codex ended with exit code {code}. {said}".strip()
    if is_server:
        return Reason.SIGNAL, f"Codex left in the middle of its turn, as it does at SIGTERM. {said}".strip()
    return Reason.TRUNCATED, f"Codex ended before its turn did. {said}".strip()


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
