"""Whether what a command has printed has arrived where a person or a program reads it.

Here it has as soon as it is flushed. A command that was called from another host is told by that host; until then an
end that it has given out does not count as given.
"""

from __future__ import annotations

from collections.abc import Callable

_asked: Callable[[], None] | None = None


def ask_by(ask: Callable[[], None]) -> None:
    """Have `until_printed` call a function, which returns once all that was flushed is printed."""
    global _asked  # noqa: PLW0603 - a process carries out one command
    _asked = ask


def until_printed() -> None:
    """Wait until what was printed and flushed has arrived.

    Raises:
        Declined: It will not be printed.
        BrokenOff: Nobody knows.
    """
    if _asked is not None:
        _asked()
