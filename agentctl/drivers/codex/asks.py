"""Keeps the open requests of Codex: they are asked as questions, then answered or withdrawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agentctl.domain.activity.row import Phase, Row, RowType
from agentctl.drivers.codex.requests import ACCEPT, CANCEL, DECLINE, CodexRequest
from agentctl.drivers.dialogue import Action, Ask, Note, Withdraw
from agentctl.drivers.jsonrpc import key_of, reply


class OpenRequests:
    """The requests that Codex waits to have answered."""

    def __init__(self) -> None:
        self._by_ask: dict[str, tuple[CodexRequest, Ask]] = {}
        #: The answer to a request for permission was to stop the agent.
        self.was_cancelled = False

    def put(self, pending: CodexRequest, asked_by: str | None, asked_by_type: str | None) -> list[Action]:
        """Return the questions of a request; one without questions is answered at once."""
        if not pending.asks:
            return [reply(pending.request_id, pending.reply({}))]
        actions: list[Action] = []
        for ask in pending.asks:
            whose = ask._replace(asked_by=asked_by, asked_by_type=asked_by_type)
            self._by_ask[ask.key] = (pending, whose)
            actions += [Note(_row(whose, Phase.START, "running")), whose]
        return actions

    def refuse(self, pending: CodexRequest) -> list[Action]:
        """Refuse a permission without asking anybody."""
        answers = dict.fromkeys((ask.key for ask in pending.asks), DECLINE)
        rows = [Note(_row(ask, Phase.END, "denied")) for ask in pending.asks]
        return [*rows, reply(pending.request_id, pending.reply(answers))]

    def answered(self, key: str, answer: str) -> list[Action]:
        """Pass on an answer; a request with several questions is answered together with the last one."""
        if key not in self._by_ask:
            return []
        pending, ask = self._by_ask.pop(key)
        is_permission = ask.tool is not None
        self.was_cancelled = self.was_cancelled or (is_permission and answer == CANCEL)
        is_no = is_permission and answer in {DECLINE, CANCEL}
        status = "denied" if is_no else "answered"
        actions: list[Action] = [Note(_row(ask, Phase.END, status, None if ask.tool and answer == ACCEPT else answer))]
        if pending.take(key, answer):
            actions.append(reply(pending.request_id, pending.reply(pending.answers)))
        return actions

    def resolved(self, request_id: Any) -> list[Action]:
        """Withdraw a request that Codex no longer waits for."""
        key = key_of(request_id)
        return self._withdraw(lambda pending: key_of(pending.request_id) == key)

    def of_thread(self, thread: str) -> list[Action]:
        """Withdraw the requests of a thread whose turn is over."""
        return self._withdraw(lambda pending: pending.thread == thread)

    def cancel_all(self) -> list[Action]:
        """Withdraw all requests, and report that to Codex where its protocol allows it."""
        pendings = {key_of(pending.request_id): pending for pending, _ in self._by_ask.values()}
        replies = [reply(one.request_id, one.withdrawn) for one in pendings.values() if one.withdrawn is not None]
        return [*self._withdraw(lambda _: True), *replies]

    def _withdraw(self, is_meant: Callable[[CodexRequest], bool]) -> list[Action]:
        actions: list[Action] = []
        for key, (pending, ask) in list(self._by_ask.items()):
            if is_meant(pending):
                del self._by_ask[key]
                actions += [Withdraw(key), Note(_row(ask, Phase.END, "cancelled"))]
        return actions


def _row(ask: Ask, phase: Phase, status: str, text: str | None = None) -> Row:
    detail: Mapping[str, Any] | None = ask.arguments if phase is Phase.START else None
    row = Row(RowType.QUESTION, f"question:{ask.key}", phase, parent=ask.asked_by, status=status, name=ask.tool)
    return row._replace(
        agent_type=ask.asked_by_type, text=ask.question if phase is Phase.START else text, detail=detail
    )
