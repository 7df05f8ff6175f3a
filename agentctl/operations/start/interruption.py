"""What Ctrl-C leaves of a start: nothing before its workers are in the queue, afterwards all of them, by name."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from types import FrameType

from agentctl.adapters.signals import signal
from agentctl.adapters.taskdir import TaskDir
from agentctl.domain.names import first_of
from agentctl.errors import StartInterrupted
from agentctl.operations.where.command_lines import command_line

#: So many workers are named in a command that stops them.
_MOST_NAMES = 20


class HeldInterrupt:
    """Holds the first Ctrl-C back, from `hold_back` to the end of the block; the second one counts at once.

    Does nothing in other threads than the first, or where somebody has a handler of their own: the interpreter would
    not raise `KeyboardInterrupt` here.
    """

    def __init__(self) -> None:
        #: Whether one came.
        self.came = False
        self._is_held = False

    def __enter__(self) -> HeldInterrupt:
        return self

    def hold_back(self) -> None:
        """Hold it back from now on."""
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            with contextlib.suppress(ValueError):  # Only the first thread may.
                signal.signal(signal.SIGINT, self._note)
                self._is_held = True

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.came = True
        self._let_through()

    def _let_through(self) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._is_held = False

    def __exit__(self, *_: object) -> None:
        if self._is_held:
            self._let_through()


def interrupted(task: TaskDir, names: Sequence[str]) -> StartInterrupted:
    """Return what is raised where Ctrl-C leaves workers: they are named, with what shows and what stops them."""
    if len(names) > _MOST_NAMES:
        hint = command_line(task, "list")
    else:
        hint = f"{command_line(task, 'show', names[0])}; {command_line(task, 'cancel', *names)}"
    return StartInterrupted(f"{first_of(names, 3)} left running in {task.id}", hint)


def cut_short(task: TaskDir) -> StartInterrupted:
    """Return what is raised where a second Ctrl-C ends a start that was not whole: any of its workers may be left."""
    return StartInterrupted(f"nobody knows what the start has left in {task.id}", command_line(task, "list"))
