"""Spans laid out in rows of a width, and tables of them: their columns are as wide as what is in them, or fold."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from agentctl.interfaces.words.looks.look import SpanLine, TextLook, TextSpan, joined_spans

#: Between two columns; a column is at least so wide, else each row is a list of its cells.
_GAP, _LEAST = "  ", 6
#: How a column stands in Markdown: to the left where nothing is said.
LEFT, RIGHT, CENTRE = "left", "right", "center"
_WORD = re.compile(r"\s+|\S+")

Spans = tuple[TextSpan, ...]


def cells_wide(text: str) -> int:
    r"""Return how many cells most terminals give a text.

    >>> cells_wide("abc"), cells_wide("e\u0301"), cells_wide("\u4e2d")
    (3, 1, 2)
    """
    return len(text) if text.isascii() else sum(map(_cells, text))


def _cells(one: str) -> int:
    if unicodedata.category(one) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(one) in "WF" else 1


def wrapped(line: SpanLine, width: int) -> Iterator[Spans]:
    """Yield the rows of a line: each ends behind a word, and the further ones are indented."""
    hang = line.hang if 2 * line.hang <= width else 0
    room, used, row = max(width, 2), 0, list[TextSpan]()
    for span in line.spans:
        for word in _WORD.findall(span.text):
            for part in _parts(word, max(room - hang, 2)):
                size = cells_wide(part)
                if used + size > room and used > hang:
                    yield _trimmed(row)
                    row, used = [TextSpan(" " * hang)], hang
                    if part.isspace():
                        continue
                row.append(TextSpan(part, span.look))
                used += size
    yield joined_spans(row)


def _parts(word: str, room: int) -> Iterator[str]:
    """Yield a word, in parts if it is too wide for a row."""
    if cells_wide(word) <= room:
        yield word
        return
    begin = used = 0
    for at, one in enumerate(word):
        if used + _cells(one) > room:
            yield word[begin:at]
            begin, used = at, 0
        used += _cells(one)
    yield word[begin:]


def table_lines(rows: Sequence[Sequence[Spans]], aligned: Sequence[str], room: int) -> Iterator[Spans]:
    """Yield the lines of a table, the first row of which is its head.

    Args:
        aligned: LEFT, RIGHT or CENTRE, for each column.
    """
    widths = _widths(rows, room - len(_GAP) * (len(aligned) - 1))
    if widths is None:
        yield from _as_records(rows)
        return
    for place, row in enumerate(rows):
        cells = [list(wrapped(SpanLine(cell), width)) for cell, width in zip(row, widths, strict=True)]
        for parts in zip_longest(*cells, fillvalue=()):
            placed = [_placed(*one) for one in zip(parts, widths, aligned, strict=True)]
            yield _trimmed([span for cell in placed for span in (*cell, TextSpan(_GAP))])
        if not place:
            yield (TextSpan(_GAP.join("─" * width for width in widths), TextLook.QUIET),)


def _widths(rows: Sequence[Sequence[Spans]], room: int) -> list[int] | None:
    """Return how wide each column is; None where not all of them can be read."""
    widths = [max(1, *(cells_wide(_text(cell)) for cell in column)) for column in zip(*rows, strict=True)]
    least = [min(width, _LEAST) for width in widths]
    if sum(least) > room:
        return None
    while (over := sum(widths) - room) > 0:
        widest = max(widths)
        second = max((width for width in widths if width < widest), default=1)
        many = widths.count(widest)
        step = max(1, min(widest - second, -(-over // many)))
        widths = [
            max(low, width - step) if width == widest else width for width, low in zip(widths, least, strict=True)
        ]
    return widths


def _placed(cell: Spans, width: int, aligned: str) -> Spans:
    free = max(width - cells_wide(_text(cell)), 0)
    before = free if aligned == RIGHT else free // 2 if aligned == CENTRE else 0
    return TextSpan(" " * before), *cell, TextSpan(" " * (free - before))


def _trimmed(spans: list[TextSpan]) -> Spans:
    """Return a row without the spaces at its end."""
    found = list(joined_spans(spans))
    while found and not (last := found.pop()).text.isspace():
        return (*found, TextSpan(last.text.rstrip(), last.look))
    return _trimmed(found) if found else ()


def _as_records(rows: Sequence[Sequence[Spans]]) -> Iterator[Spans]:
    """Yield each row as a list of its cells, each behind the head of its column."""
    head, *rest = rows
    for place, row in enumerate(rest or [head]):
        if place:
            yield ()
        for name, cell in zip(head, row, strict=True):
            yield joined_spans((*name, TextSpan(": ", TextLook.QUIET), *cell)) if rest else cell


def _text(spans: Spans) -> str:
    return "".join(span.text for span in spans)
