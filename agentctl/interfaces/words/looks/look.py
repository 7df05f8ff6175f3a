"""The looks of what is drawn at a terminal, and lines of spans that have them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from agentctl.domain.text.plaintext import plain, whole
from agentctl.lean import NamedTuple


class TextLook(StrEnum):
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
    TextLook.TEXT: "", TextLook.QUIET: "dim", TextLook.HEADING: "bold", TextLook.STRONG: "bold",
    TextLook.EMPHASIS: "italic", TextLook.STRUCK: "strike", TextLook.LINK: "underline", TextLook.CODE: "cyan",
    TextLook.KEYWORD: "magenta", TextLook.NAME: "blue", TextLook.STRING: "green", TextLook.NUMBER: "yellow",
    TextLook.COMMENT: "dim", TextLook.REMOVED: "red", TextLook.ADDED: "green",
    TextLook.REMOVED_WORD: "red reverse", TextLook.ADDED_WORD: "green reverse",
}  # fmt: skip


class TextSpan(NamedTuple):
    """A part of a line: safe to show, without a tab or a line break."""

    text: str
    look: TextLook = TextLook.TEXT


class SpanLine(NamedTuple):
    """A line, and how far its further rows are indented where it is wrapped."""

    spans: tuple[TextSpan, ...]
    hang: int = 0

    @property
    def text(self) -> str:
        """The line without its looks."""
        return "".join(span.text for span in self.spans)


def safe_span(text: str, look: TextLook = TextLook.TEXT) -> TextSpan:
    r"""Return a span of a text from anywhere: what a terminal would obey is an escape, each tab four spaces.

    >>> safe_span("a\tb\x1b[31m").text
    'a    b\\x1b[31m'
    """
    return TextSpan(whole(plain(text, keep="\t")).replace("\t", "    "), look)


def joined_spans(spans: Iterable[TextSpan]) -> tuple[TextSpan, ...]:
    """Return spans, those of one look that follow each other as one, and no empty one."""
    found: list[TextSpan] = []
    for span in spans:
        if found and found[-1].look == span.look:
            found[-1] = TextSpan(found[-1].text + span.text, span.look)
        elif span.text:
            found.append(span)
    return tuple(found)
