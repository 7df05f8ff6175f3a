"""Divides a line into rows of a width, as a terminal measures characters: wide ones take two cells, accents none."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from rich.cells import cell_len, split_graphemes

#: A row ends behind a word where one ends in its last third.
_SHORTEST = 2 / 3
#: The tones of skin of an emoji: a terminal that does not join them to it draws each for itself.
_MODIFIERS = frozenset(map(chr, range(0x1F3FB, 0x1F400)))
#: Marks that have a width of their own, or surround a character: terminals disagree about them.
_SPACING = frozenset(("Mc", "Me"))


def cells_of(text: str) -> int:
    """Return how many cells a text takes at most: terminals draw some characters that `rich` counts as nothing.

    >>> cells_of("abc"), cells_of("e\u0301"), cells_of("\U0001f3fb"), cells_of("a\u0903")
    (3, 1, 2, 2)
    """
    return cell_len(text) if text.isascii() else cell_len(text) + sum(map(_uncounted, text))


def _uncounted(character: str) -> int:
    if character in _MODIFIERS:
        return 2
    return 1 if unicodedata.category(character) in _SPACING else 0


def row_starts(text: str, width: int, hang: int = 0) -> tuple[int, ...]:
    """Return where each row of a line begins; the first at 0.

    Args:
        hang: So many cells of the further rows are empty, unless that is more than half of the width.

    >>> row_starts("one two three", 8), row_starts("abcdefgh", 3)
    ((0, 8), (0, 3, 6))
    """
    further = max(1, width - usable_hang(hang, width))
    if len(text) <= width and (text.isascii() or cells_of(text) <= width):
        return (0,)
    return _of_narrow(text, width, further) if text.isascii() else _of_any(text, width, further)


def usable_hang(hang: int, width: int) -> int:
    """Return how far the further rows are indented."""
    return hang if 2 * hang <= width else 0


def _of_narrow(text: str, width: int, further: int) -> tuple[int, ...]:
    starts, at, room = [0], 0, width
    while len(text) - at > room:
        space = text.rfind(" ", at + int(room * _SHORTEST), at + room + 1)
        at = at + room if space < 0 else space + 1
        if at >= len(text):
            break
        starts.append(at)
        room = further
    return tuple(starts)


def _of_any(text: str, width: int, further: int) -> tuple[int, ...]:
    starts, room, used = [0], width, 0
    #: Behind the last space of the row: (where, how many cells are before it).
    word = (0, 0)
    for start, end, cells in _pieces(text, further):
        is_space = text[start:end] == " "  # And no mark on it, which is drawn.
        if used + cells > room and not is_space and start > starts[-1]:
            is_wide = used - word[1] + cells > further  # What is behind the word would not fit the next row either.
            behind, before = word if word[1] > room * _SHORTEST and not is_wide else (start, used)
            starts.append(behind)
            room, used, word = further, used - before, (0, 0)
        used += cells
        if is_space:
            word = end, used
    return tuple(starts)


def _pieces(text: str, width: int) -> Iterator[tuple[int, int, int]]:
    """Yield (start, end, cells) of what is not divided; a character with more marks than a row has room for is."""
    for start, end, _ in split_graphemes(text)[0]:
        cells = cells_of(text[start:end])
        if cells <= max(2, width):
            yield start, end, cells
        else:
            yield from ((at, at + 1, cells_of(text[at])) for at in range(start, end))


def head_of(text: str, cells: int) -> str:
    """Return a beginning of a line that is at least so wide, where the line is; the rest need not be measured."""
    return text if len(text) <= cells else text[: 2 * cells + 64]
