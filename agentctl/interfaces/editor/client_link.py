"""The connection to the client: passes its requests to the agent, and the agent's to it. The library does the wire."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, cast

from acp.agent.router import build_agent_router
from acp.connection import Connection
from acp.exceptions import RequestError
from acp.interfaces import Agent
from pydantic import ValidationError

from agentctl.domain.text.plaintext import beginning, plain, whole
from agentctl.errors import AgentctlError, NotFound, UsageError
from agentctl.interfaces.editor.line_transport import Message, Stdio
from agentctl.interfaces.editor.turn_end import TurnFailed, error_for_client

INVALID_PARAMS, INVALID_REQUEST, NOT_FOUND, FAILED, UNKNOWN_METHOD = -32602, -32600, -32002, -32603, -32601
#: Sent to every client, as no capability says which know it: one that does not passes it over (decision 33).
_CANCEL = "$/cancel_request"
#: The id of the request that a task sends, once it is sent.
_sent: ContextVar[list[object] | None] = ContextVar("sent", default=None)


@dataclass
class _Unanswered:
    """A prompt that is not answered yet; another one is the same if it has the same id and parameters."""

    #: The id of its request, which a broken client gives to other requests, too.
    request: object
    #: What the client sent, without `_meta`.
    params: Message
    #: The client has taken it back.
    is_taken_back: bool = field(default=False, compare=False)


class EditorLink:
    """One client.

    Args:
        served: Has the methods of the library's `Agent`.
        taken_back: Called with the id of a request if the client takes that prompt back.
    """

    def __init__(self, served: Any, taken_back: Callable[[object], None]) -> None:
        self._taken_back = taken_back
        #: The prompts that are not answered yet.
        self._prompts: list[_Unanswered] = []
        self._transport = _Noting(self._heard)
        self._route = build_agent_router(cast("Agent", served), use_unstable_protocol=True)
        self._connection = Connection(self._handle, self._transport, listening=False)

    async def serve(self) -> None:
        """Serve until the client is gone."""
        await self._connection.main_loop()

    async def close(self) -> None:
        """End all requests that are under way."""
        await self._connection.close()

    # -- from the client -----------------------------------------------------------------------------------------

    def _heard(self, message: Message) -> bool:
        """Take a message first: the library knows nothing of a request that is taken back.

        What is in `_meta`, it passes on as arguments: of a client's nothing but the key of a prompt, and with a prompt
        the id of its request. A prompt that comes again before its answer is dealt with: that answer is for both.
        """
        params = message.get("params")
        named = params.pop("_meta", None) if isinstance(params, dict) else None
        if message.get("method") == "session/prompt" and isinstance(params, dict) and "id" in message:
            prompt = _Unanswered(message["id"], {**params})
            if prompt in self._prompts:
                return True
            self._prompts.append(prompt)
            params["_meta"] = {"request": message["id"], "key": _key_in(named)}
        if message.get("method") != _CANCEL:
            return False
        name = params.get("requestId") if isinstance(params, dict) else None
        taken_back = [prompt for prompt in self._prompts if prompt.request == name]
        for prompt in taken_back:
            prompt.is_taken_back = True
        if taken_back:
            self._taken_back(name)
        return True

    def is_taken_back(self, request: object) -> bool:
        """Return whether the client has taken a prompt back, which it may do before the prompt is begun."""
        return any(prompt.is_taken_back for prompt in self._prompts if prompt.request == request)

    async def _handle(self, method: str, params: Any, is_notification: bool) -> Any:
        """Pass a request on; a prompt is over with its answer, which is sent as soon as this returns."""
        try:
            return await self._routed(method, params, is_notification)
        finally:
            if method == "session/prompt" and isinstance(params, dict) and not is_notification:
                said = {name: value for name, value in params.items() if name != "_meta"}
                self._prompts.remove(_Unanswered(params["_meta"]["request"], said))

    async def _routed(self, method: str, params: Any, is_notification: bool) -> Any:
        """Pass a request on; whatever is wrong becomes an error that says so, without its whole content."""
        try:
            return await self._route(method, params if params is not None else {}, is_notification)
        except RequestError as error:
            if is_notification and error.code == UNKNOWN_METHOD:
                return None
            raise
        except ValidationError as error:
            raise RequestError(INVALID_PARAMS, f"{plain(method)}: {_in_words(error)}") from error
        except TurnFailed as error:
            raise RequestError(FAILED, error_for_client(error), error.data) from error
        except AgentctlError as error:
            code = INVALID_PARAMS if isinstance(error, UsageError) else FAILED
            data = {"next": whole(plain(error.hint, keep="\n\t"))} if error.hint else None
            raise RequestError(
                NOT_FOUND if isinstance(error, NotFound) else code, error_for_client(error), data
            ) from error

    # -- to the client -------------------------------------------------------------------------------------------

    async def update(self, session_id: str, update: Message) -> None:
        """Tell the client something of a session."""
        await self._connection.send_notification("session/update", {"sessionId": session_id, "update": update})

    async def ask(self, method: str, params: Message) -> Any:
        """Return the client's reply; if this is cancelled, the client is told to withdraw what it shows.

        Raises:
            RequestError: It replies with an error.
            ConnectionError: It is gone.
        """
        sent: list[object] = []
        _sent.set(sent)
        try:
            return await self._connection.send_request(method, params)
        except asyncio.CancelledError:
            if sent:
                with contextlib.suppress(ConnectionError):
                    await self._connection.send_notification(_CANCEL, {"requestId": sent[0]})
            raise


class _Noting(Stdio):
    """Notes the id of a request that is sent, for the task that sends it."""

    async def send(self, message: Message) -> None:
        """Send a message."""
        noted = _sent.get()
        if noted is not None and "method" in message and "id" in message:
            noted.append(message["id"])
        await super().send(message)


def _key_in(named: object) -> object:
    """Return the key that a client has named with a prompt in `_meta`, whatever it is; None where there is none."""
    ours = named.get("agentctl") if isinstance(named, dict) else None
    return ours.get("key") if isinstance(ours, dict) else None


def _in_words(error: ValidationError) -> str:
    """Return what is wrong with the parameters of a request, without what was in them."""
    said = [f"{'.'.join(map(str, one['loc'][:3]))}: {one['msg']}" for one in error.errors(include_input=False)[:3]]
    return beginning(plain("; ".join(said)), 500)
