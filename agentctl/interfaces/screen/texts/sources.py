"""What a pager can show of a worker: its transcript, raw output, events, or a finished text such as a diff.

Nothing here draws. A source numbers the paragraphs of a text and makes one of them at a time, so a text may be of any
size. One thread calls `grow` while another one reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from agentctl.adapters.files import AnyPath
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.text.plaintext import plain, whole
from agentctl.domain.text.words_diff import words_diff
from agentctl.interfaces.screen.texts.activity_source import ActivitySource
from agentctl.interfaces.screen.texts.events_source import EventsSource
from agentctl.interfaces.screen.texts.log_source import LogSource
from agentctl.interfaces.screen.texts.needle import Needle
from agentctl.interfaces.screen.texts.shown import LONGEST_LINE, LookRange, ShownLine, Spot, Tone, parts_of_line, spots
from agentctl.interfaces.words.looks.look import TextLook

#: Of a finished text so much is shown.
_MOST_CHARACTERS, _MOST_LINES = 4 << 20, 500_000
_SEARCHED_TOGETHER = 256
#: Of longer runs of changed lines no words are compared.
_LONGEST_RUN = 200
_CHANGED = (Tone.ADDED, Tone.REMOVED)
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
        line = _safe(self._lines[number])
        if not self._is_diff:
            return tuple(map(ShownLine, parts_of_line(line)))
        tone = _diff_tone(line)
        looks = tuple(self._changed_words(number)) if tone in _CHANGED and len(line) <= LONGEST_LINE else ()
        return tuple(ShownLine(part, tone, looks=looks) for part in parts_of_line(line))

    def _changed_words(self, number: int) -> Iterator[LookRange]:
        """Yield what of a line of a diff is not in the line that stands opposite it."""
        lines, kind = self._lines, self._lines[number][:1]
        begin, end = _run_around(lines, number)
        removed = (begin, end) if kind == "-" else _run_around(lines, begin - 1)
        added = (begin, end) if kind == "+" else _run_around(lines, end)
        place = number - begin
        old, new = removed[0] + place, added[0] + place
        is_pair = removed[1] == added[0] and removed[0] <= old < removed[1] and added[0] <= new < added[1]
        if not is_pair or lines[old][:1] != "-" or lines[new][:1] != "+":
            return
        before, after = (_drawn(lines[at])[1:] for at in (old, new))
        ranges = words_diff(before, after)[0 if kind == "-" else 1]
        look = TextLook.REMOVED_WORD if kind == "-" else TextLook.ADDED_WORD
        yield from ((first + 1, last + 1, look) for first, last in ranges)

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


def _safe(line: str) -> str:
    return plain(whole(line), keep="\t")


def _drawn(line: str) -> str:
    return ShownLine(_safe(line)).drawn


def _diff_tone(line: str) -> Tone:
    return next((tone for begin, tone in _DIFF_TONES if line.startswith(begin)), Tone.USUAL)


def _run_around(lines: Sequence[str], number: int) -> tuple[int, int]:
    """Return where lines of a diff that are all removed, or all added, begin and end: those around one of them."""
    if not 0 <= number < len(lines) or (tone := _diff_tone(lines[number])) not in _CHANGED:
        return number, number
    begin, end = number, number + 1
    while begin > max(0, number - _LONGEST_RUN) and _diff_tone(lines[begin - 1]) is tone:
        begin -= 1
    while end < min(len(lines), number + _LONGEST_RUN) and _diff_tone(lines[end]) is tone:
        end += 1
    is_longer = any(_diff_tone(line) is tone for line in (*lines[max(begin - 1, 0) : begin], *lines[end : end + 1]))
    return (number, number) if is_longer else (begin, end)


def _lines_of(text: str) -> list[str]:
    """Return the lines of a text as they are; where it is too long its beginning, and a word about that."""
    lines = text[:_MOST_CHARACTERS].removesuffix("\n").split("\n", _MOST_LINES) if text else []
    if len(text) > _MOST_CHARACTERS or len(lines) > _MOST_LINES:
        lines[_MOST_LINES:] = []
        lines.append(f"[cut: {len(text):,} characters]")
    return lines


def transcript_of(worker: WorkerDir, *, is_source: bool = True) -> ActivitySource:
    """Return what an agent did."""
    return ActivitySource(worker.activity, is_source=is_source)


def stdout_of(worker: WorkerDir, *, is_spelled_out: bool = False) -> LogSource:
    """Return what a worker printed."""
    return LogSource(worker.stdout, is_spelled_out=is_spelled_out)


def stderr_of(worker: WorkerDir, *, is_spelled_out: bool = False) -> LogSource:
    """Return what a worker printed to stderr."""
    return LogSource(worker.stderr, is_spelled_out=is_spelled_out)


def events_of(worker: WorkerDir) -> EventsSource:
    """Return what the log of the task says of a worker."""
    return EventsSource(worker.task.events, worker.instance)
