"""Which rows of a text are visible: its top is a place in the text, as in `less`, so nobody needs the text's height."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator

from agentctl.interfaces.screen.texts.layout import row_starts
from agentctl.interfaces.screen.texts.shown import ShownLine, Spot, unreadable
from agentctl.interfaces.screen.texts.sources import PagerSource
from agentctl.lean import NamedTuple

#: In place of a line: the divider above a paragraph.
_DIVIDER = -1
_CACHED = 512
_MOST_KEPT, _MOST_KEPT_LINES = 128, 16


class Anchor(NamedTuple):
    """A row of a text: paragraph, line in it (-1: the divider above it), row of the line; all from 0."""

    paragraph: int
    line: int = 0
    row: int = 0


class ShownRow(NamedTuple):
    """A visible row: part of a line, or a divider."""

    anchor: Anchor
    line: ShownLine
    start: int
    end: int
    divider: str | None = None


class TextWindow:
    """The visible rows of a text."""

    def __init__(self, source: PagerSource) -> None:
        self.source = source
        self.width, self.height = 80, 24
        self.wraps = True
        self.top = Anchor(0)
        #: The words of a divider, by the paragraph above which it is; all that came later is below it.
        self.dividers: dict[int, str] = {}
        self._generation = source.generation
        #: Paragraphs as they were a moment ago: each step asks for one several times.
        self._kept: dict[int, tuple[ShownLine, ...]] = {}
        self._layouts: OrderedDict[tuple[int, int], tuple[ShownLine, tuple[int, ...]]] = OrderedDict()

    # -- layout --------------------------------------------------------------------------------------------------

    def change(self, *, width: int | None = None, height: int | None = None, wraps: bool | None = None) -> None:
        """Change the form of the window; the character at its top stays there."""
        top = self.top
        start = self._row(top).start if self._exists(top) else 0
        self.width = max(1, self.width if width is None else width)
        self.height = max(1, self.height if height is None else height)
        self.wraps = self.wraps if wraps is None else wraps
        self._layouts.clear()
        if self._exists(top) and top.line != _DIVIDER:
            self.top = top._replace(row=bisect_right(self._starts(top), start) - 1)

    def renew(self) -> bool:
        """Look at the text anew, and begin at its start if it was replaced by another; return whether it was."""
        self._kept.clear()
        if self._generation == self.source.generation:
            return False
        self._generation = self.source.generation
        self.top = Anchor(0)
        self.dividers.clear()
        self._layouts.clear()
        return True

    def lines(self, paragraph: int) -> tuple[ShownLine, ...]:
        """Return the lines of a paragraph; where it cannot be read, why."""
        found = self._kept.get(paragraph)
        if found is None:
            try:
                found = self.source.paragraph(paragraph)
            except Exception as error:  # noqa: BLE001 - whatever it is, the other paragraphs may be readable
                found = unreadable(error)
            if len(found) <= _MOST_KEPT_LINES:
                if len(self._kept) >= _MOST_KEPT:
                    self._kept.clear()
                self._kept[paragraph] = found
        return found

    def _line(self, anchor: Anchor) -> ShownLine:
        """Return the line of an anchor; an empty one where it is gone.

        The thread that reads on takes up a text that was replaced at any moment, even within a step.
        """
        lines = self.lines(anchor.paragraph)
        return lines[anchor.line] if anchor.line < len(lines) else ShownLine("")

    def _exists(self, anchor: Anchor) -> bool:
        if anchor.line == _DIVIDER:
            return anchor.paragraph in self.dividers
        return anchor.paragraph < len(self.source) and anchor.line < len(self.lines(anchor.paragraph))

    def _starts(self, anchor: Anchor) -> tuple[int, ...]:
        """Return where the rows of an anchor's line begin; a divider is one row."""
        if anchor.line == _DIVIDER or not self.wraps:
            return (0,)
        line, key = self._line(anchor), anchor[:2]
        found = self._layouts.get(key)
        if found is None or found[0] != line:
            found = line, row_starts(line.drawn, self.width, line.hang)
            self._layouts[key] = found
            while len(self._layouts) > _CACHED:
                self._layouts.popitem(last=False)
        return found[1]

    # -- steps ---------------------------------------------------------------------------------------------------

    def first(self) -> Anchor:
        """Return the first row of the text."""
        return self._first_of(0)

    def last(self) -> Anchor:
        """Return the last row of the text: a divider, where nothing has come since."""
        total = len(self.source)
        if total in self.dividers or not total:
            return Anchor(total, _DIVIDER if total in self.dividers else 0)
        return self._end_of(total - 1, len(self.lines(total - 1)) - 1)

    def _first_of(self, paragraph: int) -> Anchor:
        return Anchor(paragraph, _DIVIDER if paragraph in self.dividers else 0)

    def _end_of(self, paragraph: int, line: int) -> Anchor:
        anchor = Anchor(paragraph, line)
        return anchor._replace(row=len(self._starts(anchor)) - 1)

    def next(self, anchor: Anchor) -> Anchor | None:
        """Return the row below; None below the last one."""
        paragraph, line, row = anchor
        total = len(self.source)
        if paragraph >= total:
            return None
        if row + 1 < len(self._starts(anchor)):
            return anchor._replace(row=row + 1)
        if line + 1 < len(self.lines(paragraph)):
            return Anchor(paragraph, line + 1)
        below = self._first_of(paragraph + 1)
        return below if below.paragraph < total or below.line == _DIVIDER else None

    def previous(self, anchor: Anchor) -> Anchor | None:
        """Return the row above; None above the first one."""
        paragraph, line, row = anchor
        if row:
            return anchor._replace(row=row - 1)
        if line > 0:
            return self._end_of(paragraph, line - 1)
        if line == 0 and paragraph in self.dividers:
            return Anchor(paragraph, _DIVIDER)
        return self._end_of(paragraph - 1, len(self.lines(paragraph - 1)) - 1) if paragraph else None

    def rows(self) -> Iterator[ShownRow]:
        """Yield the visible rows, from the top."""
        at: Anchor | None = self.top if self._exists(self.top) else None
        for _ in range(self.height):
            if at is None:
                return
            yield self._row(at)
            at = self.next(at)

    def _row(self, anchor: Anchor) -> ShownRow:
        if anchor.line == _DIVIDER:
            return ShownRow(anchor, ShownLine(""), 0, 0, self.dividers[anchor.paragraph])
        line, starts = self._line(anchor), self._starts(anchor)
        row = min(anchor.row, len(starts) - 1)
        end = starts[row + 1] if row + 1 < len(starts) else len(line.drawn)
        return ShownRow(anchor, line, starts[row], end)

    # -- movements -----------------------------------------------------------------------------------------------

    def move(self, rows: int) -> int:
        """Scroll down by so many rows, or up by as many below 0; return by how many it did."""
        moved, step = 0, self.next if rows > 0 else self.previous
        limit = self.lowest_top() if rows > 0 else None
        at: Anchor | None = self.top
        while moved < abs(rows) and at is not None and (limit is None or at < limit):
            at = step(at)
            if at is not None:
                self.top, moved = at, moved + 1
        return moved

    def lowest_top(self) -> Anchor:
        """Return the top at which the last row of the text is the last visible one."""
        at = self.last()
        for _ in range(self.height - 1):
            above = self.previous(at)
            if above is None:
                break
            at = above
        return at

    def settle(self) -> None:
        """Take the top back into the text, where that has become shorter."""
        if not self._exists(self.top) or self.top > self.lowest_top():
            self.top = self.lowest_top()
        elif self.top.row:
            self.top = self.top._replace(row=min(self.top.row, len(self._starts(self.top)) - 1))

    def reveal(self, spot: Spot, column: int = 0) -> None:
        """Make a character of a line visible: where it is not, a third of the window stays above its row."""
        at = Anchor(spot.paragraph, spot.line)
        if not self._exists(at):
            return
        at = at._replace(row=bisect_right(self._starts(at), column) - 1)
        if any(row.anchor == at for row in self.rows()):
            return
        for _ in range(self.height // 3):
            above = self.previous(at)
            if above is None:
                break
            at = above
        self.top = at
        self.settle()

    def divide(self, words: str) -> None:
        """Draw a line below all that has come so far."""
        self.dividers[len(self.source)] = words
