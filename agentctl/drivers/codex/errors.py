"""Decides why a Codex agent ended, from its errors, its exit code and its standard error."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from typing import Any

from agentctl.domain.states import Reason
from agentctl.drivers.complaints import Complaints
from agentctl.drivers.signs import auth_in, is_billing, reason_of_words, status_in
from agentctl.drivers.values import STATUS_REASONS, object_in, signal_in, text_in

#: The oldest release whose sandbox keeps to the permission profiles that agents are given.
OLDEST = "0.146.0"
INSTALL = "npm install -g @openai/codex"
_LONGEST = 500
#: How a turn ended: the reason and the message of a failure, else None and None.
Decision = tuple[Reason | None, str | None]
INTERRUPTED: Decision = (Reason.SIGNAL, "it was interrupted")
#: `codexErrorInfo`, if it is a word. For a word that is not listed, above all `other`, the message decides.
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
#: Exit codes of a shell script that cannot find or execute its program.
_NOT_FOUND = frozenset({126, 127})
#: Lines of stderr that explain no end.
_IRRELEVANT = re.compile(
    r"could not create PATH aliases|could not find bubblewrap|tools::router|^\s*$"
    r"|^reading (?:additional input|prompt) from stdin|^stack backtrace:|^\d+: |^at \S+:\d+",
    re.IGNORECASE,
)


def turn_error_reason(error: Mapping[str, Any]) -> Reason:
    """Return why a turn failed, or is being retried.

    >>> turn_error_reason({"message": "Missing environment variable: `KEY`.", "codexErrorInfo": "other"}).value
    'auth'
    >>> info = {"responseStreamDisconnected": {"httpStatusCode": 401}}
    >>> turn_error_reason({"message": "...", "codexErrorInfo": info}).value
    'auth'
    """
    info, text = error.get("codexErrorInfo"), message_of(error)
    if is_billing(text):
        return Reason.BILLING  # Whatever is reported with it: the status of a rate limit, or a used-up window.
    if isinstance(info, str) and info in _BY_WORD:
        return _BY_WORD[info]
    status = _http_status(info) or status_in(text)
    return (STATUS_REASONS.get(status) if status else None) or reason_of_words(text) or Reason.MODEL_ERROR


def message_of(error: Mapping[str, Any]) -> str:
    """Return an error as a person reads it."""
    message, details = _sentence(text_in(error.get("message"))), text_in(error.get("additionalDetails"))
    return f"{message}: {details}" if message and details else message or details or "Codex gave no reason"


def _sentence(message: str) -> str:
    """Return the provider's own sentence if Codex passed on the whole body of the provider's answer."""
    if message.startswith("{"):
        with contextlib.suppress(ValueError, RecursionError):
            return text_in(object_in(object_in(json.loads(message)).get("error")).get("message")) or message
    return message


def is_telling(line: str) -> bool:
    """Return whether a line of stderr may explain an end."""
    return not _IRRELEVANT.search(line.strip())


def unopened(why: str | None) -> str:
    """Return the message for a Codex that did not open a thread, as an older one does not.

    >>> unopened("Codex ended with exit code 2.")
    '`codex app-server` could not begin: Codex ended with exit code 2; agentctl needs Codex 0.146.0 or newer: \
npm install -g @openai/codex'
    """
    found = f"`codex app-server` could not begin: {why}"[:_LONGEST].rstrip(".")
    return f"{found}; agentctl needs Codex {OLDEST} or newer: {INSTALL}"


def early_end(
    code: int, complaints: Complaints, retried: Mapping[str, Any] | None, *, has_begun: bool
) -> tuple[Reason, str]:
    """Return why the app-server ended without having reported the end of its turn.

    It exits by itself, with 0, only if somebody asks it to.

    Args:
        complaints: What it has written to stderr.
        retried: The error after which it was retrying.
        has_begun: It had opened its thread.
    """
    if retried is not None:
        return turn_error_reason(retried), message_of(retried)
    if (number := signal_in(code)) is not None:
        how = f"signal {number} ended Codex"
        return Reason.SIGNAL, complaints.explain(how if has_begun else unopened(how))
    if refused := complaints.known_by(auth_in):
        return refused
    if not has_begun:
        is_older = code not in _NOT_FOUND
        how = f"Codex ended before it began, with exit code {code}"
        return Reason.NOT_STARTED, complaints.explain(unopened(how) if is_older else how)
    if code > 0:
        return Reason.EXIT_CODE, complaints.explain(f"Codex ended with exit code {code}")
    return Reason.SIGNAL, complaints.explain("Codex exited in the middle of its turn, as it does on SIGTERM")


def _http_status(info: Any) -> int | None:
    for value in object_in(info).values():
        status = object_in(value).get("httpStatusCode")
        if isinstance(status, int):
            return status
    return None
