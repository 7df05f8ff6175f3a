"""The clients of a server, and the state that is kept for each of them between its calls."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable

import anyio

from agentctl.interfaces.mcp.wire import Context
from agentctl.tools.registry import Toolbox

#: The most sessions over HTTP that are kept; an older one has to find its task again.
_MOST_CLIENTS = 10_000
_SESSION_HEADER = "mcp-session-id"


class McpClient:
    """One client: its tools, and the forms that its user was shown."""

    def __init__(self, toolbox: Toolbox) -> None:
        self.toolbox = toolbox
        #: Questions whose form is shown to the user now, and those whose form brought no answer.
        self.shown: set[str] = set()
        self.unsettled: set[str] = set()
        #: Calls that wait; they answer as soon as a form brings no answer.
        self._waiting: set[anyio.CancelScope] = set()

    def waits(self, scope: anyio.CancelScope, *, is_over: bool = False) -> None:
        """Note that a call waits within a cancel scope, or no longer does."""
        (self._waiting.discard if is_over else self._waiting.add)(scope)

    def unsettle(self, question: str) -> None:
        """Note that a form brought no answer, and wake the waiting calls."""
        self.unsettled.add(question)
        for scope in list(self._waiting):
            scope.cancel()

    def knows_unsettled(self, questions: Iterable[str]) -> bool:
        """Return whether the form of one of these questions brought no answer."""
        return not self.unsettled.isdisjoint(questions)


class McpClients:
    """The clients of a server: one on standard input, one for each session over HTTP.

    The newer protocol has no sessions: over HTTP all its clients count as one.
    """

    def __init__(self, toolbox: Toolbox) -> None:
        self._first = McpClient(toolbox)
        self._by_session: OrderedDict[str, McpClient] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, ctx: Context) -> McpClient:
        """Return the client of a request."""
        session = ctx.request.headers.get(_SESSION_HEADER) if ctx.request is not None else None
        if session is None:
            return self._first
        with self._lock:
            if session not in self._by_session:
                self._by_session[session] = McpClient(self._first.toolbox.renewed())
                while len(self._by_session) > _MOST_CLIENTS:
                    self._by_session.popitem(last=False)
            self._by_session.move_to_end(session)
            return self._by_session[session]
