"""JSON-RPC as Codex speaks it: a message a line, and the calls whose responses are still to come."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from agentctl.drivers.codex.items import as_dict, as_text
from agentctl.drivers.dialogue import Action, Say
from agentctl.lean import NamedTuple

_NO_SUCH_METHOD = -32601


class _Call(NamedTuple):
    then: Callable[[dict[str, Any]], list[Action]]
    otherwise: Callable[[str], list[Action]]


class Calls:
    """Calls of the program, and what is to be done about each response."""

    def __init__(self) -> None:
        self._open: dict[int, _Call] = {}
        self._last = 0

    def call(
        self,
        method: str,
        params: Mapping[str, Any],
        then: Callable[[dict[str, Any]], list[Action]],
        otherwise: Callable[[str], list[Action]],
    ) -> Say:
        """Return a call; `then` takes its result, `otherwise` the message of its error."""
        self._last += 1
        self._open[self._last] = _Call(then, otherwise)
        return Say(line({"id": self._last, "method": method, "params": params}))

    def responded(self, message: Mapping[str, Any]) -> list[Action] | None:
        """Return what follows from a response; None where nobody waits for it."""
        call_id = message.get("id")
        call = self._open.pop(call_id, None) if isinstance(call_id, int) else None
        if call is None:
            return None
        if "error" in message:
            return call.otherwise(as_text(as_dict(message["error"]).get("message")) or "no cause told")
        return call.then(as_dict(message.get("result")))


def tell(method: str) -> Say:
    """Return a notification."""
    return Say(line({"method": method}))


def reply(request_id: Any, result: Any) -> Say:
    """Return the response to a request of the program."""
    return Say(line({"id": request_id, "result": result}))


def refuse(request_id: Any, method: str) -> Say:
    """Return the response to a request that is not known; without one the turn would wait for ever."""
    return Say(line({"id": request_id, "error": {"code": _NO_SUCH_METHOD, "message": f"{method} is not known here"}}))


def line(message: Mapping[str, Any]) -> bytes:
    """Return a message as a line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def object_in(data: bytes) -> dict[str, Any] | None:
    """Return the JSON object that a line of the program's output is; None where it is none."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
