"""JSON-RPC 2.0 as agent programs speak it: one message per line, and the calls that have no response yet."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from agentctl.drivers.dialogue import Action, Say
from agentctl.drivers.values import line_of, object_in, text_in
from agentctl.lean import NamedTuple

NO_SUCH_METHOD, CANCELLED = -32601, -32800


class RpcError(NamedTuple):
    """The error in a response."""

    message: str
    code: int | None = None
    data: Any = None


class _OpenCall(NamedTuple):
    """What to do with the result of a call, or with its error."""

    then: Callable[[dict[str, Any]], list[Action]]
    otherwise: Callable[[RpcError], list[Action]]


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
        otherwise: Callable[[RpcError], list[Action]],
    ) -> Say:
        """Return a call; `then` takes its result, `otherwise` its error."""
        self._last += 1
        self._open[self._last] = _OpenCall(then, otherwise)
        return _say({"id": self._last, "method": method, "params": params})

    def responded(self, message: Mapping[str, Any]) -> list[Action] | None:
        """Return the actions that follow a response; None if nobody waits for it."""
        call_id = message.get("id")
        call = self._open.pop(call_id, None) if type(call_id) is int else None
        if call is None:
            return None
        if "error" in message:
            return call.otherwise(_error_in(object_in(message["error"])))
        return call.then(object_in(message.get("result")))


def notification_of(method: str, params: Mapping[str, Any] | None = None) -> Say:
    """Return a notification."""
    return _say({"method": method} if params is None else {"method": method, "params": params})


def reply(request_id: Any, result: Any) -> Say:
    """Return the response to a request of the program."""
    return _say({"id": request_id, "result": result})


def refuse(request_id: Any, message: str, code: int = NO_SUCH_METHOD) -> Say:
    """Return an error as the response to a request; without one the program would wait forever."""
    return _say({"id": request_id, "error": {"code": code, "message": message}})


def request_key(request_id: Any) -> str:
    """Return a request's key; ids are numbers or strings, and 0 is not "0"."""
    return json.dumps(request_id, sort_keys=True)


def _say(message: Mapping[str, Any]) -> Say:
    return Say(line_of({"jsonrpc": "2.0", **message}))


def _error_in(error: Mapping[str, Any]) -> RpcError:
    code = error.get("code")
    message = text_in(error.get("message")) or "no reason given"
    return RpcError(message, code if type(code) is int else None, error.get("data"))
