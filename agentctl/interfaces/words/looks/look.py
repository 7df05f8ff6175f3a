"""The looks of what is drawn at a terminal, and lines of spans that have them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache

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


#: How each is drawn, in the words of `StyledText`. What was changed is told by more than its colour.
STYLES: dict[str, str] = {
    TextLook.TEXT: "", TextLook.QUIET: "dim", TextLook.HEADING: "bold", TextLook.STRONG: "bold",
    TextLook.EMPHASIS: "italic", TextLook.STRUCK: "strike", TextLook.LINK: "underline", TextLook.CODE: "f6",
    TextLook.KEYWORD: "f5", TextLook.NAME: "f4", TextLook.STRING: "f2", TextLook.NUMBER: "f3",
    TextLook.COMMENT: "dim", TextLook.REMOVED: "f1", TextLook.ADDED: "f2",
    TextLook.REMOVED_WORD: "f1 inverse", TextLook.ADDED_WORD: "f2 inverse",
}  # fmt: skip
#: The words of an output's style that rich and Textual have another word for.
_OTHERWISE = {"inverse": "reverse"}
_ATTRIBUTES = frozenset(("bold", "dim", "italic", "underline", "strike"))
#: A colour of an output: of the text, or behind it; one of 256, or any.
_COLOUR = re.compile(r"([fb])(?:(\d+)|(#[0-9a-f]{6}))")


@lru_cache(1024)
def style_of(look: str) -> str:
    """Return how a look is drawn, in the words of rich and Textual; of an output, a look is its own style.

    >>> style_of(TextLook.ADDED_WORD), style_of("bold inverse f9 b#102030"), style_of("unknown")
    ('color(2) reverse', 'bold reverse color(9) on #102030', '')
    """
    return " ".join(filter(None, map(_style_word, STYLES.get(look, look).split())))


def _style_word(word: str) -> str:
    colour = _COLOUR.fullmatch(word)
    if colour is not None:
        ground, number, shade = colour.groups()
        return f"{'on ' if ground == 'b' else ''}{f'color({number})' if number else shade}"
    return _OTHERWISE.get(word, word if word in _ATTRIBUTES else "")


class TextSpan(NamedTuple):
    """A part of a line: safe to show, without a tab or a line break."""

    text: str
    #: One of `TextLook`; of an output its style, in the words of `StyledText`.
    look: str = TextLook.TEXT


class SpanLine(NamedTuple):
    """A line, and how far its further rows are indented where it is wrapped."""

    spans: tuple[TextSpan, ...]
    hang: int = 0

    @property
    def text(self) -> str:
        """The line without its looks."""
        return "".join(span.text for span in self.spans)


def safe_span(text: str, look: str = TextLook.TEXT) -> TextSpan:
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
