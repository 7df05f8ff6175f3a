"""What the pager shows of a text: lines that are safe to draw, with a tone for each, and a place among them."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from agentctl.domain.text.plaintext import plain, whole
from agentctl.domain.text.terminal_output import StyledText
from agentctl.errors import AgentctlError
from agentctl.interfaces.screen.texts.needle import Needle
from agentctl.interfaces.words.looks.look import SpanLine, TextLook
from agentctl.lean import NamedTuple

#: A longer line is shown as several, so that no key waits for the layout of megabytes.
LONGEST_LINE = 4096


class Tone(StrEnum):
    """What a line is, by which the theme colours it."""

    USUAL = "usual"
    #: Thoughts and remarks: what may be skipped.
    QUIET = "quiet"
    CALL = "call"
    QUESTION = "question"
    PROBLEM = "problem"
    ADDED = "added"
    REMOVED = "removed"
    HUNK = "hunk"
    HEADING = "heading"


#: Where a part of a line begins and ends, and its look, of which `STYLES` has the style.
LookRange = tuple[int, int, str]


class ShownLine(NamedTuple):
    """A line of a paragraph: no control characters but tabs, and at most `LONGEST_LINE` characters of its source."""

    text: str
    tone: Tone = Tone.USUAL
    #: So many characters at the beginning are a time, and drawn quietly.
    stamp: int = 0
    #: How far its further rows are indented where it is wrapped.
    hang: int = 0
    #: The parts of `drawn` that do not look as the rest of the line does, in order.
    looks: tuple[LookRange, ...] = ()
    #: Of an output with styles of its own: these; together they are the text.
    spans: tuple[StyledText, ...] = ()

    @property
    def drawn(self) -> str:
        """The text as it is drawn and searched: each tab is spaces."""
        return self.text.expandtabs() if "\t" in self.text else self.text


def shown_lines(line: SpanLine, tone: Tone = Tone.USUAL, stamp: int = 0) -> Iterator[ShownLine]:
    """Yield a line of spans, in parts if it is too long."""
    begin = 0
    for part in parts_of_line(line.text):
        end = begin + len(part)
        yield ShownLine(part, tone, 0 if begin else stamp, line.hang, tuple(_looks_in(line, begin, end)))
        begin = end


def _looks_in(line: SpanLine, begin: int, end: int) -> Iterator[LookRange]:
    at = 0
    for text, look in line.spans:
        first, last = max(at, begin), min(at + len(text), end)
        at += len(text)
        if first < last and look != TextLook.TEXT:
            yield first - begin, last - begin, look


class DrawnForm:
    """The form of a text that is drawn, for a width, or shown as it was written."""

    def __init__(self, *, is_source: bool) -> None:
        self.width, self.is_source = 80, is_source

    def fit(self, width: int) -> None:
        """Draw it for a width."""
        if width != self.width:
            self.width = width
            self.draw_anew()

    def change_source(self) -> None:
        """Show it as it was written, or drawn again."""
        self.is_source = not self.is_source
        self.draw_anew()

    def draw_anew(self) -> None:
        """Forget how it was drawn."""
        raise NotImplementedError


#: Of a file that was cut or replaced while it was shown.
GONE = (ShownLine("(this is no longer in the file)", Tone.QUIET),)


def text_problem(error: Exception) -> str:
    """Return why a text cannot be read; of what nobody foresaw also its kind."""
    return plain(error if isinstance(error, AgentctlError | OSError) else f"{type(error).__name__}: {error}")


def unreadable(error: Exception) -> tuple[ShownLine, ...]:
    """Return what is shown in place of a paragraph that cannot be read."""
    return tuple(
        ShownLine(part, Tone.PROBLEM) for part in parts_of_line(whole(f"(this cannot be read: {text_problem(error)})"))
    )


class Spot(NamedTuple):
    """A line of a text, by the number of its paragraph and its number in it; the first are 0."""

    paragraph: int
    line: int = 0


def spots(needle: Needle, paragraph: int, lines: tuple[ShownLine, ...]) -> Iterator[Spot]:
    """Yield the lines of a paragraph that have a needle."""
    for number, shown in enumerate(lines):
        if needle.is_in(shown.drawn):
            yield Spot(paragraph, number)


def parts_of_line(text: str) -> Iterator[str]:
    """Yield a line in parts that are short enough; an empty line is one part."""
    for start in range(0, len(text) or 1, LONGEST_LINE):
        yield text[start : start + LONGEST_LINE]
