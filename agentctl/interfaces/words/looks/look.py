"""The looks of what is drawn at a terminal, and lines of spans that have them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from agentctl.domain.text.plaintext import plain, whole
from agentctl.lean import NamedTuple


class Look(StrEnum):
    """What a part of a line is, by which it is drawn."""

    TEXT = "text"
    QUIET = "quiet"
    HEADING = "heading"
    STRONG = "strong"
    EMPHASIS = "emphasis"
    STRUCK = "struck"
    LINK = "link"
    CODE = "code"
    # Within code.
    KEYWORD = "keyword"
    NAME = "name"
    STRING = "string"
    NUMBER = "number"
    COMMENT = "comment"
    # Of a change.
    REMOVED = "removed"
    ADDED = "added"
    REMOVED_WORD = "removed-word"
    ADDED_WORD = "added-word"


#: How each is drawn, in the words of rich and Textual. What was changed is told by more than its colour.
STYLES: dict[str, str] = {
    Look.TEXT: "", Look.QUIET: "dim", Look.HEADING: "bold", Look.STRONG: "bold", Look.EMPHASIS: "italic",
    Look.STRUCK: "strike", Look.LINK: "underline", Look.CODE: "cyan", Look.KEYWORD: "magenta", Look.NAME: "blue",
    Look.STRING: "green", Look.NUMBER: "yellow", Look.COMMENT: "dim", Look.REMOVED: "red", Look.ADDED: "green",
    Look.REMOVED_WORD: "red reverse", Look.ADDED_WORD: "green reverse",
}  # fmt: skip


class Span(NamedTuple):
    """A part of a line: safe to show, without a tab or a line break."""

    text: str
    look: Look = Look.TEXT


class SpanLine(NamedTuple):
    """A line, and how far its further rows are indented where it is wrapped."""

    spans: tuple[Span, ...]
    hang: int = 0

    @property
    def text(self) -> str:
        """The line without its looks."""
        return "".join(span.text for span in self.spans)


def safe_span(text: str, look: Look = Look.TEXT) -> Span:
    r"""Return a span of a text from anywhere: what a terminal would obey is an escape, each tab four spaces.

    >>> safe_span("a\tb\x1b[31m").text
    'a    b\\x1b[31m'
    """
    return Span(whole(plain(text, keep="\t")).replace("\t", "    "), look)


def joined(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Return spans, those of one look that follow each other as one, and no empty one."""
    found: list[Span] = []
    for span in spans:
        if found and found[-1].look == span.look:
            found[-1] = Span(found[-1].text + span.text, span.look)
        elif span.text:
            found.append(span)
    return tuple(found)
