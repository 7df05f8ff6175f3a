"""Decides why Claude Code ended, from its results, its API errors and its last lines of standard error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentctl.domain.states import Reason
from agentctl.drivers.complaints import Complaints
from agentctl.drivers.values import STATUS_REASONS, bounded_text, list_in, object_in, signal_in, text_in
from agentctl.lean import NamedTuple

#: The program's own words for API errors.
_ERRORS = {
    "authentication_failed": Reason.AUTH,
    "oauth_org_not_allowed": Reason.AUTH,
    "account_on_hold": Reason.AUTH,
    "verification_required": Reason.AUTH,
    "cloud_credential_error": Reason.AUTH,
    "billing_error": Reason.BILLING,
    "rate_limit": Reason.RATE_LIMITED,
    "overloaded": Reason.OVERLOADED,
    "max_output_tokens": Reason.TRUNCATED,
}
_SUBTYPES = {
    "error_max_turns": Reason.MAX_TURNS,
    "error_max_budget_usd": Reason.BUDGET,
    "error_max_structured_output_retries": Reason.SCHEMA,
}
_STOPS = {"refusal": Reason.REFUSED, "max_tokens": Reason.TRUNCATED}
#: Texts that give a reason where no code does: problems with the program's own login, a stream that was cut.
_TEXTS = (
    ("not logged in", Reason.AUTH),
    ("please run /login", Reason.AUTH),
    ("invalid api key", Reason.AUTH),
    ("failed to authenticate", Reason.AUTH),
    ("oauth token", Reason.AUTH),
    ("credit balance is too low", Reason.BILLING),
    ("spend limit reached", Reason.BILLING),
    ("reached your specified api usage limits", Reason.BILLING),
    ("prompt is too long", Reason.CONTEXT),
    ("connection lost mid-response", Reason.TRUNCATED),
    ("may be incomplete", Reason.TRUNCATED),
)


class ApiError(NamedTuple):
    """An error of the API, as a line reports it."""

    status: int | None
    words: tuple[str, ...]


def api_error(line: Mapping[str, Any]) -> ApiError:
    """Return the API error in a `result`, in an `api_retry`, or in an `assistant` line that reports an error."""
    status = line.get("api_error_status", line.get("error_status"))
    words = tuple(text_in(line.get(name)) for name in ("error", "api_error"))
    return ApiError(status if type(status) is int else None, words)


def api_error_reason(error: ApiError, text: str = "") -> Reason:
    """Return what an API error means for the worker.

    >>> api_error_reason(ApiError(529, ("server_error", "")))
    <Reason.OVERLOADED: 'overloaded'>
    """
    if reason_in_message(text) is Reason.BILLING:
        return Reason.BILLING  # Whatever the status: it may be that of a rate limit, which ends by itself.
    if error.status in STATUS_REASONS:
        return STATUS_REASONS[error.status]
    for word in error.words:
        if word in _ERRORS:
            return _ERRORS[word]
    return reason_in_message(text) or Reason.MODEL_ERROR


def reason_in_message(text: str) -> Reason | None:
    """Return the reason that a human-readable message gives; None if it gives no known one."""
    lowered = text.lower()
    return next((reason for words, reason in _TEXTS if words in lowered), None)


def ending_of(
    result: Mapping[str, Any], error: ApiError | None, *, is_interrupted: bool = False
) -> tuple[Reason | None, str | None]:
    """Return the reason and the message of a `result`; without a reason it is a natural end.

    Args:
        result: The line.
        error: The API error that an earlier `assistant` line reported.
        is_interrupted: It was asked to stop: refusals of its open calls are then not denials.
    """
    subtype, stop = text_in(result.get("subtype")), text_in(result.get("stop_reason"))
    text = text_in(result.get("result"))
    message = bounded_text("; ".join(filter(None, map(text_in, list_in(result.get("errors"))))) or text) or None
    # Only `false` is a natural end: a result without this field is of an unknown kind.
    if result.get("is_error") is False and subtype not in _SUBTYPES:
        return (_STOPS[stop], message or f"the model stopped: {stop}") if stop in _STOPS else (None, None)
    if subtype in _SUBTYPES or stop in _STOPS:
        return _SUBTYPES.get(subtype) or _STOPS[stop], message
    if subtype == "error_during_execution":
        return _broken_off(result, message, is_interrupted=is_interrupted)
    status, words = api_error(result)
    if error:
        status, words = status or error.status, (*words, *error.words)
    return api_error_reason(ApiError(status, words), text), message


def _broken_off(result: Mapping[str, Any], message: str | None, *, is_interrupted: bool) -> tuple[Reason, str | None]:
    why = text_in(result.get("terminal_reason"))
    if not why.startswith("aborted"):
        return reason_in_message(message or "") or Reason.EXIT_CODE, message
    denied = [text_in(object_in(denial).get("tool_name")) for denial in list_in(result.get("permission_denials"))]
    if why == "aborted_tools" and denied and not is_interrupted:
        return Reason.PERMISSION_DENIED, f"denied: {', '.join(dict.fromkeys(denied))}"
    return Reason.SIGNAL, "it was interrupted in the middle of its turn"


def ending_without_result(code: int, complaints: Complaints, *, has_begun: bool) -> tuple[Reason, str]:
    """Return why a program ended without having printed a result."""
    if known := complaints.known_by(reason_in_message):
        return known
    if (number := signal_in(code)) is not None:
        return Reason.SIGNAL, complaints.explain(f"the program was ended by signal {number}")
    if has_begun:
        how = f"the program ended in the middle of its work, with exit code {code}"
        return Reason.TRUNCATED, complaints.explain(how)
    return Reason.NOT_STARTED, complaints.explain(f"the program ended before it began, with exit code {code}")
