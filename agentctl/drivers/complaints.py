"""What a program writes to standard error: its last lines, which may explain an end that nothing else explains."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from agentctl.drivers.dialogue import Action
from agentctl.drivers.values import bounded_text


class Complaining:
    """The part of a dialogue that keeps the complaints of its program."""

    #: How many lines are kept.
    MOST_COMPLAINTS = 10

    def __init__(self) -> None:
        self.complaints: deque[str] = deque(maxlen=self.MOST_COMPLAINTS)

    def complained(self, line: bytes) -> Sequence[Action]:
        """Keep a line, unless it says nothing."""
        if text := self.complaint_in(line):
            self.complaints.append(bounded_text(text))
        return ()

    def complaint_in(self, line: bytes) -> str:
        """Return what a line may explain; empty if it explains no end."""
        return line.decode(errors="replace").strip()
