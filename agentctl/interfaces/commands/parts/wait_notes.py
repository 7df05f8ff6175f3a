"""What a wait tells a person beside the ends: open questions, and workers that cannot start or end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from agentctl.interfaces.words.worker import questions_open, refused_words, stranded_words
from agentctl.lean import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TypeAlias

    from agentctl.adapters.taskdir import Root
    from agentctl.domain.names import WorkerId
    from agentctl.operations.show.askers import PendingQuestion
    from agentctl.operations.wait.live_view import DiskRefusal

    Note: TypeAlias = Callable[[str], None]


def questions_to_note(asked: Sequence[PendingQuestion], root: Root) -> list[str]:
    """Return the line that says which questions are open below what was shown, if any are."""
    if not asked:
        return []
    from agentctl.operations.where.command_lines import root_words  # Mostly nobody asks.

    return [questions_open(asked, root_words(root))]


class QuestionNotes:
    """Reports the open questions during a wait, each once.

    Args:
        note: Takes each line.
    """

    def __init__(self, note: Note, root: Root) -> None:
        self._note, self._root = note, root
        self._noted: set[PendingQuestion] = set()

    def __call__(self, asked: Sequence[PendingQuestion]) -> None:
        if not self._noted.issuperset(asked):
            for line in questions_to_note(asked, self._root):
                self._note(line)
        self._noted.update(asked)


class StrandedNotes:
    """Reports during a wait the workers that nobody starts, each once.

    Args:
        note: Takes each line.
        command: The command line that has them started.
    """

    def __init__(self, note: Note, command: str) -> None:
        self._note, self._command = note, command
        self._noted: set[WorkerId] = set()

    def __call__(self, stranded: Sequence[WorkerId]) -> None:
        if not self._noted.issuperset(stranded):
            self._note(stranded_words(stranded, self._command))
        self._noted.update(stranded)


class HeldNotes:
    """Reports during a wait what keeps workers in the queue until somebody lets them go, each hold once."""

    def __init__(self, note: Note) -> None:
        self._note = note
        self._noted: set[str] = set()

    def __call__(self, holds: Sequence[str]) -> None:
        for hold in holds:
            if hold not in self._noted:
                self._note(hold)
        self._noted.update(holds)


class RefusedNotes:
    """Reports during a wait what a disk refuses, each worker once."""

    def __init__(self, note: Note) -> None:
        self._note = note
        self._noted: set[WorkerId] = set()

    def __call__(self, refused: Mapping[WorkerId, DiskRefusal]) -> None:
        for worker, refusal in refused.items():
            if worker not in self._noted:
                self._note(refused_words(worker, refusal))
        self._noted.update(refused)
