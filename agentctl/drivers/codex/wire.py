"""JSON-RPC as Codex speaks it: one message per line, and the calls that have no response yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agentctl.drivers.dialogue import Action, Say
from agentctl.drivers.values import line_of, object_in, text_in
from agentctl.lean import NamedTuple

_NO_SUCH_METHOD = -32601


class _OpenCall(NamedTuple):
    """What to do with the result of a call, or with its error."""

    then: Callable[[dict[str, Any]], list[Action]]
    otherwise: Callable[[str], list[Action]]


class Calls:
    """The calls that wait for a response, and what to do with each response."""

    def __init__(self) -> None:
        self._open: dict[int, _OpenCall] = {}
        self._last = 0

    def call(
        self,
        method: str,
        params: Mapping[str, Any],
        then: Callable[[dict[str, Any]], list[Action]],
        otherwise: Callable[[str], list[Action]],
    ) -> Say:
        """Return a call; `then` takes its result, `otherwise` its error message."""
        self._last += 1
        self._open[self._last] = _OpenCall(then, otherwise)
        return Say(line_of({"id": self._last, "method": method, "params": params}))

    def responded(self, message: Mapping[str, Any]) -> list[Action] | None:
        """Return the actions that follow a response; None if nobody waits for it."""
        call_id = message.get("id")
        call = self._open.pop(call_id, None) if isinstance(call_id, int) else None
        if call is None:
            return None
        if "error" in message:
            return call.otherwise(text_in(object_in(message["error"]).get("message")) or "no reason given")
        return call.then(object_in(message.get("result")))


def tell(method: str) -> Say:
    """Return a notification."""
    return Say(line_of({"method": method}))


def reply(request_id: Any, result: Any) -> Say:
    """Return the response to a request of the program."""
    return Say(line_of({"id": request_id, "result": result}))


def refuse(request_id: Any, method: str) -> Say:
    """Return the response to an unknown request; without one the turn would wait forever."""
    return Say(line_of({"id": request_id, "error": {"code": _NO_SUCH_METHOD, "message": f"{method} is not supported"}}))
