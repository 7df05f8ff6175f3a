"""Rows as a terminal takes them: text, with sequences of our own for its looks, and none that anybody has written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from agentctl.domain.text.terminal_rows import rows_within
from agentctl.interfaces.words.looks.look import STYLES, TextSpan

_USUAL = "\x1b[0m"
_CODES = {"bold": "1", "dim": "2", "italic": "3", "underline": "4", "inverse": "7", "strike": "9"}


def with_styles(spans: Iterable[tuple[str, str]], *, has_colours: bool = True) -> str:
    r"""Return spans as a terminal takes them, each a text and its look, or the style of an output.

    >>> with_styles([("a", ""), ("b", "bold f1 b200"), ("c", "code")])
    'a\x1b[1;31;48;5;200mb\x1b[0m\x1b[36mc\x1b[0m'
    """
    styled = ((text, _codes(look, has_colours=has_colours)) for text, look in spans)
    return "".join(f"\x1b[{codes}m{text}{_USUAL}" if codes else text for text, codes in styled)


def _codes(look: str, *, has_colours: bool) -> str:
    words = STYLES.get(look, look).split()
    return ";".join(_code(word) for word in words if has_colours or word in _CODES)


def _code(word: str) -> str:
    known = _CODES.get(word)
    if known is not None:
        return known
    base, colour = 30 if word[0] == "f" else 40, word[1:]
    if colour.startswith("#"):
        return ";".join(map(str, (base + 8, 2, *bytes.fromhex(colour[1:]))))
    number = int(colour)
    return str(base + number) if number < 8 else str(base + 52 + number) if number < 16 else f"{base + 8};5;{number}"


def markdown_rows(text: str, width: int, *, has_styles: bool, has_colours: bool) -> Iterator[str]:
    """Yield the rows of a text in Markdown; none is wider than the terminal, whatever that takes a character for."""
    from agentctl.interfaces.words.looks.markdown_lines import markdown_lines  # Mostly nobody asks anything.
    from agentctl.interfaces.words.looks.span_tables import wrapped

    for line in markdown_lines(text, width):
        for row in wrapped(line, width):
            for part in _fitting(row, width):
                yield with_styles(part, has_colours=has_colours) if has_styles else "".join(text for text, _ in part)


def _fitting(row: Sequence[TextSpan], width: int) -> Iterator[list[TextSpan]]:
    """Yield a row in parts that fit, also where a terminal gives each doubtful character two cells."""
    begin = 0
    for part in rows_within("".join(span.text for span in row), width):
        end = begin + len(part)
        yield list(_between(row, begin, end))
        begin = end


def _between(row: Sequence[TextSpan], begin: int, end: int) -> Iterator[TextSpan]:
    at = 0
    for text, look in row:
        part = text[max(begin - at, 0) : max(end - at, 0)]
        if part:
            yield TextSpan(part, look)
        at += len(text)
