"""Shows an output at a terminal as a terminal shows it, as lines.

Nothing of what the output asks a terminal for reaches this one: what is printed are rows, in styles of our own.
"""

from __future__ import annotations

from collections.abc import Iterator

from agentctl.domain.text.terminal_output import TerminalRow, rows_of_text
from agentctl.interfaces.words.looks.look import SpanLine, TextLook, TextSpan, joined_spans
from agentctl.interfaces.words.looks.terminal_styles import with_styles


def printed_row(row: TerminalRow, *, has_colours: bool) -> str:
    """Return what is printed of a row."""
    return with_styles(row.spans) if has_colours else row.text


def printed_lines(text: str, most: int | None = None, *, is_end: bool = False) -> list[SpanLine]:
    r"""Return the lines of a whole output, or of an end that was cut off, up to so many characters as they are shown.

    >>> printed_lines("1 %\r\x1b[32m2 %\x1b[m\nend", 4)[0].spans
    (TextSpan(text='2 %', look='f2'),)
    >>> [line.text for line in printed_lines("1 %\r2 %\nend", 4)]
    ['2 %', 'e']
    >>> [line.text for line in printed_lines("0m half\nwhole", is_end=True)]
    ['whole']
    """
    found, left = list[SpanLine](), most
    for row in rows_of_text(text, is_end=is_end):
        found.append(SpanLine(joined_spans(_spans_within(row, left))))
        left = None if left is None else left - len(row.text)
        if left is not None and left <= 0:
            break
    return found


def _spans_within(row: TerminalRow, room: int | None) -> Iterator[TextSpan]:
    for text, style in row.spans:
        yield TextSpan(text[:room], style or TextLook.TEXT)
        room = None if room is None else max(room - len(text), 0)
