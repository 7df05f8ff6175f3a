"""Tells a person who waits at a terminal what happens: by its bell, or by a notification that it passes on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from agentctl.adapters.clock import monotonic
from agentctl.adapters.taskdir import TaskDir
from agentctl.interfaces.commands.model.invocation import Invocation

if TYPE_CHECKING:
    from agentctl.operations.notify.terminal_notices import TerminalNotices
    from agentctl.operations.show.askers import PendingQuestion

_LEAST_S = 0.25


class Bell:
    """Rings while a command waits. Where stderr is not a terminal, it does nothing."""

    def __init__(self, call: Invocation, task: TaskDir) -> None:
        self._notices: TerminalNotices | None = None
        self._next_s = 0.0
        #: As it is now: a table that is drawn live takes its place, and lets no control character through.
        self._stream = sys.stderr
        if call.is_terminal("stderr"):
            from agentctl.operations.notify.terminal_notices import TerminalNotices  # Only for people.

            self._notices = TerminalNotices(task)

    def ring(self, *, is_last: bool = False) -> None:
        """Tell what there is to be told on this terminal; a few times a second, and at the end."""
        if self._notices is not None and (is_last or monotonic() >= self._next_s):
            self._next_s = monotonic() + _LEAST_S
            self._notices.tell(self._write)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()

    def before(self, on_asked: Callable[[list[PendingQuestion]], None]) -> Callable[[list[PendingQuestion]], None]:
        """Return a function that rings, then does what `on_asked` does: a wait calls it at each look."""

        def ring_and_ask(asked: list[PendingQuestion]) -> None:
            self.ring()
            on_asked(asked)

        return ring_and_ask
