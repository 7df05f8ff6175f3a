"""Finds the reason of an end in the words of a program or a provider, where no code tells it."""

from __future__ import annotations

import re

from agentctl.domain.states import Reason
from agentctl.drivers.values import STATUS_REASONS

#: Texts about a key or a login that is missing or was refused; they occur on stderr too.
_AUTH = re.compile(
    r"missing environment variable|not logged in|unauthorized|invalid[ _]api[ _]key|incorrect api key"
    r"|api key not valid|authentication_error|(?:log|sign) ?in again|refresh token|token (?:has )?expired",
    re.IGNORECASE,
)
#: These errors have the same status as a rate limit but, unlike one, do not end by themselves. Some providers say the
#: same of a limit for a minute, with the time to wait, or name the page where a higher limit can be paid for.
_BILLING = re.compile(
    r"^(?!.*(?:retry|try again) in \d).*(?:quota exceeded|insufficient_quota|exceeded your current quota|(?<!/)billing"
    r"|credit balance|insufficient (?:balance|credits)|out of credits|spend cap|to use codex with your chatgpt plan)",
    re.IGNORECASE | re.DOTALL,
)
_RATE = re.compile(r"too many requests|rate[ _]limit|usage limit|quota", re.IGNORECASE)
_OVERLOADED = re.compile(r"overloaded", re.IGNORECASE)
_CONTEXT = re.compile(
    r"ran out of room in the model's context|context[ _](?:window|length|size)|prompt is too long|input is too long"
    r"|too many tokens|context exceeds model limit",
    re.IGNORECASE,
)
_REFUSED = re.compile(r"content_filter|content_policy", re.IGNORECASE)
#: There was no answer at all, rather than a stream that was cut.
_UNREACHED = re.compile(r"error sending request|connection refused|dns error|error trying to connect", re.IGNORECASE)
_CUT = re.compile(
    r"max_output_tokens|output token maximum|stream (?:disconnected|closed)|idle timeout waiting for sse"
    r"|connection lost mid-response|stream ended without a finish reason",
    re.IGNORECASE,
)
_SIGNS = (
    (_AUTH, Reason.AUTH),
    (_BILLING, Reason.BILLING),
    (_OVERLOADED, Reason.OVERLOADED),
    (_CONTEXT, Reason.CONTEXT),
    (_REFUSED, Reason.REFUSED),
    (_RATE, Reason.RATE_LIMITED),
    (_UNREACHED, Reason.MODEL_ERROR),
    (_CUT, Reason.TRUNCATED),
)
_STATUS = re.compile(r"(?:status|error):? \(?([45]\d\d)\b", re.IGNORECASE)


def reason_in(text: str) -> Reason | None:
    """Return the reason that a line of free text gives; None if it gives no known one.

    >>> reason_in("request failed with status: 429").value, reason_in("prompt is too long: 250000 tokens").value
    ('rate_limited', 'context')
    """
    status = status_in(text)
    if is_billing(text) or status is None:
        return reason_of_words(text)
    return STATUS_REASONS.get(status) or reason_of_words(text) or Reason.MODEL_ERROR


def auth_in(text: str) -> Reason | None:
    """Return AUTH if a line says that a key or a login is missing or was refused: no other reason is known by stderr.

    >>> auth_in("Error: not logged in").value, auth_in("rate limit reached")
    ('auth', None)
    """
    return Reason.AUTH if reason_in(text) is Reason.AUTH else None


def is_billing(text: str) -> bool:
    """Return whether a text says that the account has no money or no plan for this.

    >>> is_billing("You exceeded your current quota"), is_billing("You exceeded your current quota. Retry in 8.2s")
    (True, False)
    """
    return _BILLING.search(text) is not None


def reason_of_words(text: str) -> Reason | None:
    """Return the reason that the words of a text give, whatever status they name."""
    return next((reason for pattern, reason in _SIGNS if pattern.search(text)), None)


def status_in(text: str) -> int | None:
    """Return the HTTP status that a text names."""
    found = _STATUS.search(text)
    return int(found.group(1)) if found else None
