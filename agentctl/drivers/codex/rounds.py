"""How many tool rounds an agent has used: model responses that called a tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentctl.drivers.codex.items import is_tool

#: Items that come between two responses without the model having called anything.
_NO_ANSWER = frozenset({"userMessage", "contextCompaction", "hookPrompt"})


class Rounds:
    """Counts the rounds of one thread.

    Codex numbers none. Each response ends with new token counts, after the items of its tools; but a call that sandbox
    or policy refuses has no item, and shows only by the model going on within the turn.
    """

    def __init__(self) -> None:
        self.used = 0
        self._has_called = False
        self._is_open = False

    def item(self, item: Mapping[str, Any]) -> None:
        """Take an item that has begun."""
        if self._is_open and item.get("type") not in _NO_ANSWER:
            self.used += 1
        self._is_open = False
        self._has_called = self._has_called or is_tool(item)

    def called(self) -> None:
        """Take a call that is no item: a question to the user."""
        self._has_called = True

    def response_ended(self) -> None:
        """Take the end of a response; another one that is open still was not the turn's last."""
        self.used += int(self._has_called) + int(self._is_open)
        self._is_open = not self._has_called
        self._has_called = False

    def turn_ended(self) -> None:
        """The last response of a turn is no round."""
        self._has_called = self._is_open = False
