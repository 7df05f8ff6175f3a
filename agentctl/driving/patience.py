"""How long a driver waits: for a program to end that was hung up on, and for retries that lead nowhere."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

from agentctl.drivers.dialogue import Outcome
from agentctl.driving.program import Program

#: How long a program may take to end after it was hung up on, before it is sent SIGTERM, and then SIGKILL.
_HANG_UP_S = 10.0
_TERMINATE_S = 3.0


class Patience:
    """The deadlines of one run of an agent program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._loop = asyncio.get_running_loop()
        self._closing: asyncio.TimerHandle | None = None
        self._retries: asyncio.TimerHandle | None = None

    def hang_up(self) -> None:
        """Close the program's input; one that does not end is helped."""
        self._program.hang_up()
        if self._closing is None:
            self._closing = self._loop.call_later(_HANG_UP_S, self.terminate)

    def terminate(self) -> None:
        """Send SIGTERM, and SIGKILL to one that does not end."""
        self._program.signal(signal.SIGTERM)
        self._closing = self._loop.call_later(_TERMINATE_S, self._program.signal, signal.SIGKILL)

    def retrying(self, ceiling_s: float, outcome: Outcome, stop: Callable[[Outcome], None]) -> None:
        """Stop the program with this outcome, unless it gets on before the ceiling."""
        if self._retries is None:
            told = outcome._replace(message=f"{outcome.message} (it tried again for {ceiling_s:g} s)")
            self._retries = self._loop.call_later(ceiling_s, stop, told)

    def got_on(self) -> None:
        """Its retries have led somewhere, or do not matter any more."""
        if self._retries is not None:
            self._retries.cancel()
            self._retries = None
