"""The requests of a program that speaks JSON-RPC: they are asked as questions, then answered or withdrawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agentctl.domain.activity.row import Phase, Row, RowType
from agentctl.domain.question import ALLOW, DENY, meaning
from agentctl.drivers.dialogue import Action, Ask, Note, Say, Withdraw
from agentctl.drivers.jsonrpc import reply, request_key
from agentctl.drivers.values import bounded_values

Answers = Mapping[str, str]


class ProgramRequest:
    """One request: its questions, and how their answers become its response.

    Args:
        owner: The thread or session whose turn the request belongs to.
        withdrawn: The response that withdraws it; None if the end of the turn does.
        stopping: The answers that stop the agent.
    """

    def __init__(
        self,
        request_id: Any,
        owner: str,
        asks: list[Ask],
        result: Callable[[Answers], Any],
        withdrawn: Any = None,
        stopping: frozenset[str] = frozenset(),
    ) -> None:
        self.request_id, self.owner, self.asks, self.result = request_id, owner, asks, result
        self.withdrawn, self.stopping = withdrawn, stopping
        self.answers: dict[str, str] = {}
        #: Called when a permission is denied: some programs say nothing more of what they asked for.
        self.on_denial: Callable[[], None] = lambda: None

    def take(self, key: str, answer: str) -> bool:
        """Add an answer; return whether all questions are answered now."""
        self.answers[key] = answer
        return all(ask.key in self.answers for ask in self.asks)

    def response(self) -> Say:
        """Return the response that passes on the answers."""
        return reply(self.request_id, self.result(self.answers))


class OpenRequests:
    """The requests that the program waits to have answered."""

    def __init__(self) -> None:
        self._by_ask: dict[str, tuple[ProgramRequest, Ask]] = {}
        #: The answer to a request for permission was to stop the agent.
        self.was_stopped = False
        #: A request for permission was denied; whoever begins a turn forgets it.
        self.was_denied = False

    def __len__(self) -> int:
        """Return how many questions are open."""
        return len(self._by_ask)

    def is_open(self, request_id: Any) -> bool:
        """Return whether a request of this id waits for its answers."""
        key = request_key(request_id)
        return any(request_key(request.request_id) == key for request, _ in self._by_ask.values())

    def put(self, request: ProgramRequest, asked_by: str | None, asked_by_type: str | None) -> list[Action]:
        """Return the questions of a request; one without questions is answered at once."""
        if not request.asks:
            return [request.response()]
        actions: list[Action] = []
        for ask in request.asks:
            whose = ask._replace(asked_by=asked_by, asked_by_type=asked_by_type)
            self._by_ask[ask.key] = (request, whose)
            actions += [Note(_row(whose, Phase.START, "running")), whose]
        return actions

    def refuse(self, request: ProgramRequest) -> list[Action]:
        """Refuse a permission without asking anybody."""
        for ask in request.asks:
            request.take(ask.key, ask.deny)
        request.on_denial()
        return [*(Note(_row(ask, Phase.END, "denied")) for ask in request.asks), request.response()]

    def answered(self, key: str, answer: str) -> list[Action]:
        """Pass on an answer; a request with several questions is answered together with the last one."""
        if key not in self._by_ask:
            return []
        request, ask = self._by_ask.pop(key)
        meant = meaning(ask.means, answer) if ask.tool is not None else None
        if meant == DENY:
            self.was_denied = True
            request.on_denial()
        self.was_stopped = self.was_stopped or answer in request.stopping
        status, text = "denied" if meant == DENY else "answered", None if meant == ALLOW else answer
        actions: list[Action] = [Note(_row(ask, Phase.END, status, text))]
        return [*actions, request.response()] if request.take(key, answer) else actions

    def withdraw(self, request_id: Any) -> list[Action]:
        """Withdraw a request that the program no longer waits for."""
        key = request_key(request_id)
        return self._withdraw(lambda request: request_key(request.request_id) == key)

    def withdraw_of(self, owner: str) -> list[Action]:
        """Withdraw the requests of a thread or session whose turn is over."""
        return self._withdraw(lambda request: request.owner == owner)

    def cancel_all(self) -> list[Action]:
        """Withdraw all requests, and report that to the program where its protocol allows it."""
        requests = {request_key(request.request_id): request for request, _ in self._by_ask.values()}
        replies = [reply(one.request_id, one.withdrawn) for one in requests.values() if one.withdrawn is not None]
        return [*self._withdraw(lambda _: True), *replies]

    def _withdraw(self, is_meant: Callable[[ProgramRequest], bool]) -> list[Action]:
        actions: list[Action] = []
        for key, (request, ask) in list(self._by_ask.items()):
            if is_meant(request):
                del self._by_ask[key]
                actions += [Withdraw(key), Note(_row(ask, Phase.END, "cancelled"))]
        return actions


def _row(ask: Ask, phase: Phase, status: str, text: str | None = None) -> Row:
    is_asked = phase is Phase.START
    detail = bounded_values(ask.arguments) if is_asked and ask.arguments is not None else None
    row = Row(RowType.QUESTION, f"question:{ask.key}", phase, parent=ask.asked_by, status=status, name=ask.tool)
    return row._replace(agent_type=ask.asked_by_type, text=ask.question if is_asked else text, detail=detail)
