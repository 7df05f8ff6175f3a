"""Where a command is carried out: at a command line with its streams, or for a program that takes the value."""

from __future__ import annotations

from agentctl.lean import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from typing import IO, Any

    from agentctl.interfaces.commands.model.command_model import Shown


class TypedLines(Protocol):
    """What a person types, line by line, at the terminal of a command that goes on meanwhile."""

    @property
    def is_ours(self) -> bool:
        """Whether what is typed now is for this command."""

    @property
    def size(self) -> tuple[int, int]:
        """The columns and rows of the terminal."""

    def was_resumed(self) -> bool:
        """Return whether the command was stopped and goes on, since the last call: what was shown may be gone."""

    def begin(self, prompt: str) -> None:
        """Forget what was typed so far, and ask for a line."""

    def take(self) -> str | None:
        """Return the line that was asked for and typed, without its end; None where there is none yet.

        Of what was pasted it may be several lines.
        """

    def leave(self) -> None:
        """Ask for no line any more."""

    def descriptors(self) -> list[int]:
        """Return what becomes readable once a line was typed, or once the command was resumed."""


class Surface(Protocol):
    """What a command may know of where it is carried out, and where notes go."""

    #: Whether a name means a work, and so its newest try; otherwise a worker, as rows name it.
    names_works: bool

    def is_terminal(self, stream: str) -> bool:
        """Return whether `stdin`, `stdout` or `stderr` is a terminal at which somebody has typed this command."""

    def note(self, line: str) -> None:
        """Tell a person at a terminal something: stdout is for the data."""

    def typed(self, prompt: str) -> str:
        """Ask a person, and return the line that they type, without its end; empty where nobody types one."""

    def typed_lines(self) -> TypedLines | None:
        """Return what a person types here while the command goes on; None where nobody sees what is shown and types."""

    def show(self, shown: Shown) -> None:
        """Show a result at once."""


class Unseen:
    """For a program that takes the value of what is shown: nobody sees anything else."""

    names_works = False

    def is_terminal(self, stream: str) -> bool:  # noqa: ARG002
        """Return that it is not a terminal."""
        return False

    def note(self, line: str) -> None:
        """Do nothing: the value says the same."""

    def typed(self, prompt: str) -> str:  # noqa: ARG002
        """Return that nobody types anything."""
        return ""

    def typed_lines(self) -> None:
        """Return that nobody types."""

    def show(self, shown: Shown) -> None:
        """Do nothing: no command that is offered to a program shows anything while other code calls it back."""


def is_terminal(stream: IO[Any]) -> bool:
    """Return whether a stream is a terminal."""
    try:
        return stream.isatty()
    except ValueError:
        return False
