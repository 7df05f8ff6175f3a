"""What a wait tells a person beside the ends: open questions, and workers that cannot start or end.

Where they sit at the terminal, they are asked those questions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from agentctl.domain.states import TERMINAL
from agentctl.interfaces.words.worker import questions_open, refused_words, stranded_words
from agentctl.lean import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TypeAlias

    from agentctl.adapters.taskdir import Root
    from agentctl.domain.documents.workers.worker import WorkerRow
    from agentctl.domain.names import WorkerId
    from agentctl.interfaces.commands.model.invocation import Invocation
    from agentctl.interfaces.commands.parts.answers_here import AnswersHere
    from agentctl.operations.show.askers import PendingQuestion
    from agentctl.operations.wait.live_view import DiskRefusal
    from agentctl.operations.wait.rounds import WakeReasons

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


class AskedHere:
    """Puts the questions of a wait to whoever waits at this terminal.

    Args:
        on_others: Takes those that have to be answered elsewhere: all of them, where nobody waits at a terminal.
        make_room: Called before one is shown.
    """

    def __init__(
        self,
        call: Invocation,
        root: Root,
        on_others: Callable[[list[PendingQuestion]], None],
        make_room: Callable[[], None] = lambda: None,
    ) -> None:
        self._call, self._root, self._on_others, self._make_room = call, root, on_others, make_room
        self._answers: AnswersHere | None = None
        self._has_looked = False

    def __call__(self, asked: list[PendingQuestion]) -> None:
        """Go on with the questions that are open by now; a wait calls it at each look."""
        if asked and not self._has_looked:
            self._has_looked = True
            from agentctl.interfaces.commands.parts.answers_here import answers_here  # Mostly nobody asks.

            self._answers = answers_here(self._call, self._root, self._make_room)
        self._on_others(asked if self._answers is None else self._answers.look(asked))

    @property
    def is_asking(self) -> bool:
        """Return whether a question is on the terminal."""
        return self._answers is not None and self._answers.is_asking

    def wakes(self) -> WakeReasons:
        """Return what ends the sleep of the wait: something was typed."""
        from agentctl.operations.wait.rounds import WakeReasons  # Not above: most commands that load this do not wait.

        return WakeReasons() if self._answers is None else self._answers.wakes()


def ends_shown(
    call: Invocation, asked: AskedHere, draw: Callable[[list[WorkerRow]], None] | None = None
) -> Callable[[list[WorkerRow]], None] | None:
    """Return what a wait calls with its workers; None where nobody sees them.

    Args:
        draw: Draws them, while no question takes their place.
    """
    return _EndNotes(call.note, asked, draw) if call.is_terminal("stderr") else None


class _EndNotes:
    """Reports the ends that come while a question is on the terminal; otherwise the workers are drawn, or not shown."""

    def __init__(self, note: Note, asked: AskedHere, draw: Callable[[list[WorkerRow]], None] | None) -> None:
        self._note, self._asked, self._draw = note, asked, draw
        #: Those that have ended by now; None before the first look.
        self._ended: set[str] | None = None

    def __call__(self, rows: list[WorkerRow]) -> None:
        ended = {row["agentInstance"]: row for row in rows if row["status"] in TERMINAL}
        if self._asked.is_asking:
            self._tell(
                [row for name, row in ended.items() if name not in (ended if self._ended is None else self._ended)]
            )
        elif self._draw is not None:
            self._draw(rows)
        self._ended = {*ended}

    def _tell(self, rows: list[WorkerRow]) -> None:
        from agentctl.interfaces.commands.parts.told_ends import end_of_row, ended_line  # Mostly nobody asks.

        for row in rows:
            self._note(ended_line(end_of_row(row)))


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
