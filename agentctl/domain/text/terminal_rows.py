"""Lays a text out in the rows of a terminal: none is too wide for it, and none looks like a row of somebody else."""

from __future__ import annotations

from collections.abc import Iterator


def edged_rows(text: str, edge: str, room: int) -> str:
    r"""Return a text whose second and later rows stand behind an edge: no text can draw over that.

    Args:
        text: Safe to show.
        room: The cells of a row, with its edge.

    >>> edged_rows("a\n1  Allow", "| ", 20), edged_rows("abcdef", "| ", 5)
    ('a\n| 1  Allow', 'abc\n| def')
    """
    room = max(room - most_cells(edge), 2)
    return f"\n{edge}".join(row for line in text.split("\n") for row in rows_within(line, room))


def rows_within(line: str, room: int) -> Iterator[str]:
    """Yield a line cut into rows of at most so many cells; an empty line is a row."""
    begin = used = 0
    for at, one in enumerate(line):
        cells = _cells(one)
        if used + cells > room:
            yield line[begin:at]
            begin, used = at, 0
        used += cells
    yield line[begin:]


def most_cells(text: str) -> int:
    """Return the most cells that any terminal gives a text."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def _cells(one: str) -> int:
    """Return the most cells that any terminal gives a character: terminals disagree about marks, emoji and Greek.

    A row that is too wide for one of them goes on beyond its edge, where nobody sees the rest of a call.

    >>> [_cells(one) for one in ("a", "\N{LATIN SMALL LETTER U WITH DIAERESIS}", "\N{GRINNING FACE}", "\U0001f1e6")]
    [1, 2, 2, 2]
    """
    if one.isascii():
        return 1
    from unicodedata import category, east_asian_width  # Most texts have none of these.

    kind = category(one)
    is_narrow = kind[0] in "LMPCZ" and kind != "Cn" and east_asian_width(one) not in "WFA"
    return 1 if is_narrow else 2
