"""Answers the opening (the handshake) of a conversation over stdin before the protocol's library is loaded.

A program that starts an agent waits for its servers, and the library takes longer to load than most programs to start.
The first requests, which every client sends, are answered here, exactly as the library would. At the first line of any
other kind the library is loaded, reads the opening once more, and serves from then on. Only certain cases are handled
here: a line that is unusual in any way is left to the library.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Mapping

from agentctl import __version__
from agentctl.adapters.descriptors import read_patiently, write_patiently
from agentctl.adapters.lines import LineBuffer
from agentctl.lean import Any, NamedTuple
from agentctl.tools.prepared_offer import Offer

EXTENSION = "io.modelcontextprotocol/tasks"
#: The protocol revisions whose openings are known here: those that open with a handshake, and the one without.
_HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
_MODERN = "2026-07-28"
_VERSION, _CLIENT, _CAPABILITIES = (
    f"io.modelcontextprotocol/{name}" for name in ("protocolVersion", "clientInfo", "clientCapabilities")
)
_SELF = {"name": "agentctl", "version": __version__}
#: Metadata that any request may have and on which no answer depends.
_MARKS = frozenset({"progressToken", "traceparent", "tracestate", "baggage"})
#: A longer line is not part of an opening.
_LONGEST = 1 << 16


class OpenedConversation(NamedTuple):
    """A conversation that the library continues."""

    #: The lines that it has to read before standard input: whole, the first of them already answered if `answered`.
    lines: list[bytes]
    #: The id of the request whose answer the client already has.
    answered: int | str | None


class _Odd(Exception):
    """The line has to be left to the library."""


def open_conversation(offered: Callable[[], Offer]) -> OpenedConversation | None:
    """Answer the opening of a conversation on descriptors 0 and 1; return what is left to the library, if anything.

    Args:
        offered: Returns the current instructions and tools.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    opening, said = _Opening(offered), _InputLines()
    try:
        while (line := said.line()) is not None:
            answer = opening.answer(line)
            if answer is None:
                return OpenedConversation([*opening.lines, line, *said.rest()], opening.answered)
            write_patiently(1, answer)
    except BrokenPipeError:
        pass  # The client no longer reads: it is gone.
    return None


class _Opening:
    """One conversation, while it is being opened."""

    def __init__(self, offered: Callable[[], Offer]) -> None:
        self._offered = offered
        #: The offer whose instructions the handshake has sent, until a listing sends its tools.
        self._kept: Offer | None = None
        #: The lines that bring the library to the same state, and the answered request among them.
        self.lines: list[bytes] = []
        self.answered: int | str | None = None
        self._version: str | None = None

    def answer(self, line: bytes) -> bytes | None:
        """Return the bytes to write in answer to a line; None if the line is left to the library."""
        try:
            message = _message_in(line)
            result = self._result(message["method"], message.get("params"), "id" in message)
            if result is None:
                self.lines.append(line)
                return b""
            whole = {"jsonrpc": "2.0", "id": message["id"], "result": result}
            written = json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        except Exception:  # noqa: BLE001 - errors too are reported by the library
            return None
        if self.answered is None:
            self.lines.append(line)
            self.answered = message["id"]
        return written

    def _result(self, method: str, params: Any, is_request: bool) -> dict[str, Any] | None:
        """Return the result of a request, None for a notification that needs no answer.

        Raises:
            _Odd: It is not part of an opening.
        """
        if not is_request:
            if method == "notifications/initialized" and self._version in _HANDSHAKES and not params:
                return None
        elif method == "initialize" and self.answered is None:
            return self._greet(params)
        elif self._version in _HANDSHAKES and _has_only_marks(params):
            if method == "ping":
                return {}
            if method == "tools/list":
                return {"tools": self._tools()}
        elif self._version in {None, _MODERN} and _is_enveloped(params):
            result = self._modern(method)
            self._version = _MODERN
            return result
        raise _Odd

    def _greet(self, params: Any) -> dict[str, Any]:
        if not (
            set(params) == {"protocolVersion", "capabilities", "clientInfo"}
            and params["protocolVersion"] in _HANDSHAKES
            and _is_client(params["clientInfo"])
            and _are_capabilities(params["capabilities"])
        ):
            raise _Odd
        self._version = params["protocolVersion"]
        return {
            "protocolVersion": self._version,
            "capabilities": {"tools": {"listChanged": False}},
            "serverInfo": _SELF,
            "instructions": self._instructions(),
        }

    def _modern(self, method: str) -> dict[str, Any]:
        common = {
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
            "_meta": {"io.modelcontextprotocol/serverInfo": _SELF},
        }  # fmt: skip
        if method == "tools/list":
            return {"tools": self._tools(), **common}
        if method != "server/discover":
            raise _Odd
        capabilities = {"extensions": {EXTENSION: {}}, "tools": {"listChanged": False}}
        return {
            "supportedVersions": [_MODERN], "capabilities": capabilities, "instructions": self._instructions(), **common
        }  # fmt: skip

    def _instructions(self) -> Any:
        self._kept = self._offered()
        return self._kept["instructions"]

    def _tools(self) -> Any:
        """Return the tools as they are now, or as they were a moment ago for the greeting."""
        offer, self._kept = self._kept or self._offered(), None
        return offer["tools"]


# -- parsing a line ----------------------------------------------------------------------------------------------------


def _message_in(line: bytes) -> dict[str, Any]:
    if len(line) > _LONGEST or b"\\u" in line:  # Half a character may be written in this way.
        raise _Odd
    message = json.loads(line.decode("utf-8"), parse_constant=_refuse)
    if (
        message["jsonrpc"] != "2.0"
        or not isinstance(message["method"], str)
        or not message.keys() <= {"jsonrpc", "id", "method", "params"}
        or ("id" in message and type(message["id"]) not in (int, str))
        or not isinstance(message.get("params", {}), dict)
    ):
        raise _Odd
    found: dict[str, Any] = message
    return found


def _refuse(_: str) -> Any:
    raise _Odd


def _has_only_marks(params: Any) -> bool:
    """Return whether the parameters of an older client's request contain nothing but marks."""
    meta = (params or {}).get("_meta", {})
    return set(params or {}) <= {"_meta"} and isinstance(meta, dict) and meta.keys() <= _MARKS and _are_marks(meta)


def _is_enveloped(params: Any) -> bool:
    """Return whether the parameters are what a newer client sends with each request, and no more."""
    meta = (params or {}).get("_meta")
    return (
        set(params or {}) == {"_meta"}
        and isinstance(meta, dict)
        and meta.keys() <= {_VERSION, _CLIENT, _CAPABILITIES, *_MARKS}
        and meta.get(_VERSION) == _MODERN
        and _are_marks(meta)
        and (_CLIENT not in meta or _is_client(meta[_CLIENT]))
        and _are_capabilities(meta.get(_CAPABILITIES))
    )


def _are_marks(meta: Mapping[str, Any]) -> bool:
    """Return whether the marks for progress and tracing in a request are valid."""
    return type(meta.get("progressToken", 0)) in (int, str) and all(
        isinstance(meta.get(name, ""), str) for name in _MARKS if name != "progressToken"
    )


def _is_client(info: Any) -> bool:
    texts = {"name", "title", "version", "description", "websiteUrl"}
    return (
        isinstance(info, dict)
        and {"name", "version"} <= info.keys() <= texts
        and all(isinstance(value, str) for value in info.values())
    )


def _are_capabilities(info: Any) -> bool:
    """Return whether these are capabilities as clients declare them: objects of objects, and one flag."""
    return isinstance(info, dict) and all(
        name in {"elicitation", "experimental", "extensions", "roots", "sampling"}
        and isinstance(one, dict)
        and all(
            isinstance(value, bool if (name, part) == ("roots", "listChanged") else dict) for part, value in one.items()
        )
        for name, one in info.items()
    )


# -- standard input ----------------------------------------------------------------------------------------------------


class _InputLines:
    """The lines of standard input."""

    def __init__(self) -> None:
        self._buffer = LineBuffer()
        self._lines: list[bytes] = []
        self._is_over = False

    def line(self) -> bytes | None:
        """Return the next line, even a last one without its end; None at the end of input."""
        while not self._lines and not self._is_over:
            self._read()
        return self._lines.pop(0) if self._lines else None

    def rest(self) -> list[bytes]:
        """Return the lines that were read ahead, as whole lines."""
        while self._buffer.has_begun and not self._is_over:
            self._read()
        return self._lines

    def _read(self) -> None:
        try:
            chunk = read_patiently(0, 1 << 16)
        except OSError:
            chunk = b""
        self._is_over = not chunk
        self._lines += self._buffer.feed(chunk) if chunk else filter(None, [self._buffer.rest()])
