"""What a pager can show of a worker: its transcript, raw output, events, or a finished text such as a diff.

Nothing here draws. A source numbers the paragraphs of a text and makes one of them at a time, so a text may be of any
size. One thread calls `grow` while another one reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from agentctl.adapters.files import AnyPath
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.text.plaintext import plain, whole
from agentctl.interfaces.screen.texts.activity_source import ActivitySource
from agentctl.interfaces.screen.texts.events_source import EventsSource
from agentctl.interfaces.screen.texts.log_source import LogSource
from agentctl.interfaces.screen.texts.needle import Needle
from agentctl.interfaces.screen.texts.shown import ShownLine, Spot, Tone, parts_of_line, spots

#: Of a finished text so much is shown.
_MOST_CHARACTERS, _MOST_LINES = 4 << 20, 500_000
_SEARCHED_TOGETHER = 256
_DIFF_TONES = (
    ("diff --git ", Tone.HEADING), ("+++ ", Tone.HEADING), ("--- ", Tone.HEADING), ("index ", Tone.QUIET),
    ("@@", Tone.HUNK), ("+", Tone.ADDED), ("-", Tone.REMOVED),
)  # fmt: skip


class PagerSource(Protocol):
    """A text of numbered paragraphs, the first of which is 0."""

    #: The files that it is made from.
    paths: tuple[AnyPath, ...]
    #: Why it is not shown, or not whole.
    problem: str | None
    #: Changes when the text was replaced by another one; otherwise it only grows.
    generation: int

    def __len__(self) -> int: ...

    def grow(self) -> bool:
        """Take up what was appended, mostly 64 KiB at most; return whether there is more.

        Raises:
            OSError: A file cannot be read, or something else is in its place.
        """

    def paragraph(self, number: int) -> tuple[ShownLine, ...]:
        """Return the lines of a paragraph, at least one; the last paragraph may still change."""

    def stretch(self, number: int) -> tuple[int, int]:
        """Return the paragraphs that are searched together: (the first, the one behind the last)."""

    def hits(self, needle: Needle, first: int, last: int) -> Iterator[Spot]:
        """Yield the lines with a needle, from paragraph `first` to before `last`, which are of one stretch."""

    def close(self) -> None:
        """Let go of the files."""


class TextSource:
    """A finished text, as a function returns it: a result, a diff, or why a worker has not started."""

    def __init__(self, load: Callable[[], str], *, is_diff: bool = False) -> None:
        self.paths: tuple[AnyPath, ...] = ()
        self.problem: str | None = None
        self.generation = 0
        self._load: Callable[[], str] | None = load
        self._is_diff = is_diff
        self._lines: list[str] = []

    def __len__(self) -> int:
        return len(self._lines)

    def grow(self) -> bool:
        """Have the text made, the first time."""
        load, self._load = self._load, None
        if load is not None:
            self._lines = _lines_of(load())
        return False

    def paragraph(self, number: int) -> tuple[ShownLine, ...]:
        """Return a line, in parts if it is too long."""
        line = plain(whole(self._lines[number]), keep="\t")
        tone = next((tone for begin, tone in _DIFF_TONES if line.startswith(begin)), Tone.USUAL)
        return tuple(ShownLine(part, tone if self._is_diff else Tone.USUAL) for part in parts_of_line(line))

    def stretch(self, number: int) -> tuple[int, int]:
        """Return the paragraphs that are searched together: (the first, the one behind the last)."""
        first = number // _SEARCHED_TOGETHER * _SEARCHED_TOGETHER
        return first, min(first + _SEARCHED_TOGETHER, len(self))

    def hits(self, needle: Needle, first: int, last: int) -> Iterator[Spot]:
        """Yield the lines with a needle, from paragraph `first` to before `last`."""
        for number in range(first, last):
            yield from spots(needle, number, self.paragraph(number))

    def close(self) -> None:
        """Do not have the text made any more."""
        self._load = None


def _lines_of(text: str) -> list[str]:
    """Return the lines of a text as they are; where it is too long its beginning, and a word about that."""
    lines = text[:_MOST_CHARACTERS].removesuffix("\n").split("\n", _MOST_LINES) if text else []
    if len(text) > _MOST_CHARACTERS or len(lines) > _MOST_LINES:
        lines[_MOST_LINES:] = []
        lines.append(f"[cut: {len(text):,} characters]")
    return lines


def transcript_of(worker: WorkerDir) -> ActivitySource:
    """Return what an agent did."""
    return ActivitySource(worker.activity)


def stdout_of(worker: WorkerDir) -> LogSource:
    """Return what a worker printed."""
    return LogSource(worker.stdout)


def stderr_of(worker: WorkerDir) -> LogSource:
    """Return what a worker printed to stderr."""
    return LogSource(worker.stderr)


def events_of(worker: WorkerDir) -> EventsSource:
    """Return what the log of the task says of a worker."""
    return EventsSource(worker.task.events, worker.instance)
