"""What a dialogue did, for tests that look at it."""

from __future__ import annotations

from typing import Any

from agentctl.domain.activity.row import Row
from agentctl.drivers.dialogue import Action, AgentOutcome, Finished, Note, StopProgram


class Recorded:
    """The actions of a dialogue, in their order."""

    def __init__(self) -> None:
        self.actions: list[Action] = []

    def of(self, kind: type[Any]) -> list[Any]:
        """Return the actions of a kind."""
        return [action for action in self.actions if isinstance(action, kind)]

    @property
    def rows(self) -> list[Row]:
        """The rows of its activity."""
        return [note.row for note in self.of(Note)]

    @property
    def outcome(self) -> AgentOutcome:
        """How it ended."""
        ends = self.of(Finished) + self.of(StopProgram)
        assert ends, self.actions
        outcome = ends[-1].outcome
        assert isinstance(outcome, AgentOutcome)
        return outcome
