"""Decides why an ACP agent ended: from stop reasons, errors of the protocol, exit codes and standard error."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from agentctl.domain.states import Reason
from agentctl.drivers.complaints import Complaints
from agentctl.drivers.dialogue import SILENT
from agentctl.drivers.jsonrpc import RpcError
from agentctl.drivers.signs import auth_in, reason_in
from agentctl.drivers.values import STATUS_REASONS, bounded_text, list_in, object_in, signal_in, text_in
from agentctl.lean import NamedTuple

#: How a turn ended: the reason and the message of a failure, else None and None.
Decision = tuple[Reason | None, str | None]
INTERRUPTED: Decision = (Reason.SIGNAL, "it was interrupted")
_STOPS: Mapping[str, Decision] = {
    "end_turn": (None, None),
    "max_tokens": (Reason.TRUNCATED, "the model's limit of output cut its answer"),
    "max_turn_requests": (Reason.MAX_TURNS, "the program's own limit of requests in a turn was reached"),
    "refusal": (Reason.REFUSED, "the model declined"),
}
_AUTH_REQUIRED = -32000
#: Fields in which programs pass on the provider's status and sentence.
_STATUS_FIELDS = ("status", "statusCode", "httpStatusCode", "status_code")
_TEXT_FIELDS = ("message", "error", "details", "detail", "reason", "errorKind", "type", "code", "stack")
_DEEPEST = 6
_LEADING_STATUS = re.compile(r"([45]\d\d) ", re.ASCII)
_FAILURE, _NEW_SESSION = "sessionFailure", "new_session"
_UNKNOWN = "unknown"
_CATEGORIES = {"limit": Reason.RATE_LIMITED, "auth": Reason.AUTH, "access": Reason.AUTH, "refusal": Reason.REFUSED}


def stopped(stop: str, *, was_denied: bool, is_silent: bool = False) -> Decision:
    """Return how a turn ended by its stop reason.

    Args:
        was_denied: A permission was denied, and the agent has not said or done anything since. Some programs end the
            turn then, as cancelled or as if all was well.
        is_silent: The agent has said nothing at all.
    """
    if was_denied and stop in {"cancelled", "end_turn"}:
        return Reason.PERMISSION_DENIED, "the program ended its turn because a permission was denied"
    if stop == "cancelled":
        return Reason.SIGNAL, "the program said that its turn was cancelled, and nobody had cancelled it"
    if is_silent and stop == "end_turn":
        return None, SILENT
    return _STOPS.get(stop) or (Reason.MODEL_ERROR, f"its turn ended for an unknown reason: {stop or 'none was given'}")


class TurnFailure(NamedTuple):
    """What a program tells, by an extension, of a turn that failed or of a request that it tries once more."""

    reason: Reason
    message: str
    is_final: bool
    #: It is one that programs know, not just anything that they want to tell.
    is_known: bool = True


def failure_in(meta: Mapping[str, Any], depth: int = 3) -> TurnFailure | None:
    """Return the failure that the `_meta` of a message tells; None where it tells none.

    >>> failure_in({"jetbrains": {"air": {"sessionFailure": {"category": "limit", "severity": "error"}}}}).reason.value
    'rate_limited'
    """
    said = object_in(meta.get(_FAILURE))
    if said:
        title = text_in(said.get("title")) or "the program gave no reason"
        category = text_in(said.get("category"))
        by_kind = _CATEGORIES.get(category, Reason.MODEL_ERROR)
        if list_in(said.get("actions")) == [_NEW_SESSION]:  # Nothing else helps, not even a further try.
            by_kind = Reason.CONTEXT
        is_final = said.get("severity") == "error"
        return TurnFailure(reason_in(title) or by_kind, bounded_text(title), is_final, is_known=category != _UNKNOWN)
    inner = (failure_in(object_in(value), depth - 1) for value in meta.values()) if depth else ()
    return next((found for found in inner if found is not None), None)


def failed(error: RpcError) -> tuple[Reason, str]:
    """Return why a request failed.

    >>> failed(RpcError("Internal error", -32603, {"message": "429 Too Many Requests"}))[0].value
    'rate_limited'
    """
    texts = list(_texts_in(error.data, _DEEPEST))
    message = "; ".join(dict.fromkeys([error.message, *(text for text in texts if text not in error.message)]))
    status = _status_in(error.data, _DEEPEST) or _status_before(texts)
    if (known := reason_in(message)) is Reason.BILLING:
        return known, bounded_text(message)
    if error.code == _AUTH_REQUIRED:
        return Reason.AUTH, bounded_text(message)
    found = (STATUS_REASONS.get(status) if status else None) or known or Reason.MODEL_ERROR
    return found, bounded_text(message)


def ended_early(code: int, complaints: Complaints, *, has_begun: bool, doubt: str = "") -> tuple[Reason, str]:
    """Return why a program ended without having ended its turn.

    Args:
        complaints: What it has written to its standard error.
        has_begun: It had opened its session.
        doubt: What may be wrong with one that has not even greeted.
    """
    if (number := signal_in(code)) is not None:
        return Reason.SIGNAL, complaints.explain(f"signal {number} ended the program")
    if refused := complaints.known_by(auth_in):
        return refused
    if has_begun:
        how = f"the program ended in the middle of its turn, with exit code {code}"
        return Reason.TRUNCATED, complaints.explain(how)
    why = f" ({doubt})" if doubt else ""
    return Reason.NOT_STARTED, complaints.explain(f"the program ended before it began, with exit code {code}{why}")


def _texts_in(data: Any, depth: int) -> Iterable[str]:
    """Yield the sentences in the data of an error, whose form is the program's own."""
    if isinstance(data, str):
        inner = _json_in(data)
        if inner is None:
            yield data
        elif depth:
            yield from _texts_in(inner, depth - 1)
    elif depth:
        for item in list_in(data):
            yield from _texts_in(item, depth - 1)
        fields = object_in(data)
        for name in _TEXT_FIELDS:
            if name in fields:
                yield from _texts_in(fields[name], depth - 1)


def _status_in(data: Any, depth: int) -> int | None:
    fields = object_in(data if not isinstance(data, str) else _json_in(data))
    for name in _STATUS_FIELDS:
        if type(fields.get(name)) is int and 400 <= fields[name] < 600:
            return int(fields[name])
    inner = (_status_in(value, depth - 1) for value in fields.values()) if depth else ()
    return next((status for status in inner if status is not None), None)


def _status_before(texts: Iterable[str]) -> int | None:
    """Return the status with which a sentence begins, as some programs pass it on: `401 Unknown key`."""
    found = (_LEADING_STATUS.match(text) for text in texts)
    return next((int(status[1]) for status in found if status), None)


def _json_in(text: str) -> Any:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def auth_hint(methods: Any) -> str:
    """Return how a program wants a person to log in, by what it said when it was greeted."""
    each = map(object_in, list_in(methods))
    named = [text_in(one.get("description")) or text_in(one.get("name")) for one in each]
    known = "; ".join(filter(None, named))
    return bounded_text(f" (it knows these ways to log in: {known})") if known else ""
