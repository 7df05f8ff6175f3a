"""What the pager shows of a text: lines that are safe to draw, with a tone for each, and a place among them."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from agentctl.domain.text.plaintext import plain, whole
from agentctl.errors import AgentctlError
from agentctl.interfaces.screen.texts.needle import Needle
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


class ShownLine(NamedTuple):
    """A line of a paragraph: no control characters but tabs, and at most `LONGEST_LINE` characters of its source."""

    text: str
    tone: Tone = Tone.USUAL
    #: So many characters at the beginning are a time, and drawn quietly.
    stamp: int = 0
    #: How far its further rows are indented where it is wrapped.
    hang: int = 0

    @property
    def drawn(self) -> str:
        """The text as it is drawn and searched: each tab is spaces."""
        return self.text.expandtabs() if "\t" in self.text else self.text


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
