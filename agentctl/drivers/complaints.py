"""What a program writes beside its protocol: its last line, which may explain an end that nothing else explains."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import final

from agentctl.domain.states import Reason
from agentctl.domain.worker.last_output import LOOKED_AT, last_line_of, lines_at_end

#: How many lines are kept, and how many of them may explain an end: a program may go on about what it met.
_MOST_KEPT, _EXPLAINING = 100, 10


class Complaints:
    """The last lines of a program's standard error; of one that wrote nothing there, those of its stdout that are not
    messages of its protocol. A driver gets of them what explains an end, as a terminal shows it.

    Args:
        is_telling: Whether a line may explain an end.
    """

    def __init__(self, is_telling: Callable[[str], bool] = bool) -> None:
        self._is_telling = is_telling
        self._kept: deque[bytes] = deque(maxlen=_MOST_KEPT)
        self._strays: deque[bytes] = deque(maxlen=_EXPLAINING)

    def keep(self, line: bytes) -> None:
        """Keep a line, unless it says nothing."""
        if line.strip():
            self._kept.extend(_ends_of(line))

    def stray(self, line: bytes) -> None:
        """Keep a line of its stdout that is not a message: some say there why they do not begin."""
        if line.strip():
            self._strays.extend(_ends_of(line))

    def explain(self, how: str) -> str:
        r"""Return how a program ended, behind the line that it wrote last: why it did is what one looks for.

        >>> said = Complaints()
        >>> for line in b"Traceback:", b"\x1b[31mValueError: 3\x1b[m":
        ...     said.keep(line)
        >>> said.explain("signal 9 ended it"), Complaints().explain("signal 9 ended it")
        ('ValueError: 3; signal 9 ended it', 'signal 9 ended it')
        """
        return "; ".join(filter(None, (last_line_of(self._telling()), how)))

    def known_by(self, reason_in: Callable[[str], Reason | None]) -> tuple[Reason, str] | None:
        """Return the reason that the last line gives of those that give one, and this line."""
        for line in reversed(self._telling()):
            if (reason := reason_in(line)) is not None:
                return reason, str(last_line_of([line]))
        return None

    def has_any(self, signs: Iterable[str]) -> bool:
        """Return whether one of these texts is in a line that is kept, however many came behind it."""
        return any(sign in line for sign in signs for line in _lines(self._kept))

    def _telling(self) -> Sequence[str]:
        said = [line for line in _lines(self._kept) if self._is_telling(line)][-_EXPLAINING:]
        return said or _lines(self._strays)


def _ends_of(line: bytes) -> Sequence[bytes]:
    """Return a line; of a long one its ends: a bar that is drawn over is one line, and the error stands behind it."""
    half = LOOKED_AT // 2
    return (line,) if len(line) <= LOOKED_AT else (line[:half], line[-half:])


def _lines(kept: Iterable[bytes]) -> Sequence[str]:
    data = b"\n".join(kept)
    return lines_at_end(data, len(data), _MOST_KEPT)


class Complaining:
    """The part of a dialogue that keeps the complaints of its program."""

    def __init__(self, is_telling: Callable[[str], bool] = bool) -> None:
        self.complaints = Complaints(is_telling)

    @final
    def complained(self, line: bytes) -> tuple[()]:
        """Keep a line."""
        self.complaints.keep(line)
        return ()
