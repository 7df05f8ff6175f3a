r"""Prints an output that is followed, so that it says in the end what it would say if it had been printed then.

On a screen the last rows are printed over where they change, by nothing but motions within them. Where nothing can be
taken back, a row is printed once it can change no more, or has not changed for a while. A row that changes once it is
out of reach is printed again when it can change no more: the second time is the last.

Words: a row is out of reach if it has left the screen, or something else was printed below it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from agentctl.domain.text.terminal_output import StyledText, TerminalOutput, TerminalRow
from agentctl.interfaces.words.looks.printed_rows import printed_row
from agentctl.interfaces.words.looks.span_tables import cells_wide

#: A row that has not changed for so long is printed where nothing can be taken back.
QUIET_S = 0.5
_ERASE_ROW, _ERASE_BELOW, _UP, _DOWN = "\x1b[K", "\x1b[J", "\x1b[A", "\x1b[B"

Size = Callable[[], os.terminal_size]


class FollowedRows:
    """Makes of one stream, piece by piece, what is printed.

    Args:
        has_colours: Styles are shown.
        size: Returns the size of the screen now; None where nothing can be taken back.
    """

    def __init__(self, *, has_colours: bool, size: Size | None) -> None:
        self._has_colours, self._size_now = has_colours, size
        self._size = os.terminal_size((0, 0))
        self._terminal = TerminalOutput()
        #: The rows that may still change, as they were printed; from which on they are in reach.
        self._printed: list[TerminalRow] = []
        self._reach = 0
        #: The cursor stands behind the last of them, not below it.
        self._is_within = False
        #: Rows that still change were taken away, and come again.
        self.is_aside = False
        #: The rows when they were looked at last, where nothing can be taken back.
        self._looked: list[TerminalRow] = []

    def feed(self, data: bytes, *, is_last: bool = False) -> str:
        r"""Return what is printed of the next bytes.

        >>> bar = FollowedRows(has_colours=False, size=lambda: os.terminal_size((80, 24)))
        >>> bar.feed(b"1 %"), bar.feed(b"\r2 %\nend\n"), bar.feed(b"\x1b[2A3", is_last=True)
        ('1 %', '\r\x1b[K2 %\nend\n', '\r\x1b[2A\x1b[K3 %\n\n')
        >>> once = FollowedRows(has_colours=False, size=None)
        >>> once.feed(b"1 %"), once.feed(b"\r2 %\nend\n"), once.feed(b"\x1b[2A3", is_last=True)
        ('', '', '3 %\nend\n')
        """
        self._terminal.feed(data)
        self.is_aside = False
        settled = self._terminal.settled()
        rows = [*settled, *self._terminal.rows()]
        final = len(rows) if is_last else len(settled)
        text = self._once(rows, final) if self._size_now is None else self._on_screen(rows, final, is_last=is_last)
        del self._printed[: len(settled)], self._looked[: len(settled)]
        self._reach = max(0, self._reach - len(settled))
        if is_last:
            self.leave()
        return text

    def _changed_out_of_reach(self, rows: Sequence[TerminalRow]) -> list[int]:
        both = enumerate(zip(self._printed[: self._reach], rows, strict=False))
        return [number for number, (was, row) in both if was.spans != row.spans]

    # -- where nothing can be taken back ---------------------------------------------------------------------------

    @property
    def holds(self) -> bool:
        """Whether whole rows are not printed yet."""
        return self._size_now is None and self._whole(self._terminal.rows()) > len(self._printed)

    def give(self) -> str:
        """Return what is printed of whole rows, whether they still change or not."""
        rows = self._terminal.rows()
        return self._once(rows, self._whole(rows))

    def look(self) -> str:
        """Return what is printed since it has not changed since this was called last."""
        rows, count = self._terminal.rows(), len(self._printed)
        most = min(self._whole(rows), len(self._looked))
        while count < most and self._looked[count].spans == rows[count].spans:
            count += 1
        self._looked = rows
        return self._once(rows, count) if count > len(self._printed) else ""

    def _whole(self, rows: Sequence[TerminalRow]) -> int:
        return len(rows) - (self._terminal.row == len(rows) - 1)

    def _once(self, rows: Sequence[TerminalRow], count: int) -> str:
        """Print the rows up to one, and those before it that have changed since they were."""
        changed = [number for number in self._changed_out_of_reach(rows) if number < count]
        for number in changed:
            self._printed[number] = rows[number]
        new = rows[len(self._printed) : count]
        self._printed += new
        self._reach = len(self._printed)
        return "".join(f"{self._words(row)}\n" for row in [*(rows[number] for number in changed), *new])

    # -- on a screen -----------------------------------------------------------------------------------------------

    def _on_screen(self, rows: list[TerminalRow], final: int, *, is_last: bool) -> str:
        self._measure()
        text = self._grown(rows)
        is_within = not is_last and self._goes_within(len(rows))
        changed = self._changed_out_of_reach(rows)
        top = next((number for number in changed if number >= self._first_in_reach(rows)), None)
        again = [number for number in changed if top is None or number < top] if changed and changed[0] < final else []
        if again or top is not None:
            text += self._away(self._reach) + "".join(f"{self._words(rows[number])}\n" for number in again)
            top = self._reach if top is None else top
            text += self._below(rows[top:], is_within=is_within)
        else:
            top = self._reach
            text += self._over(rows, is_within=is_within)
        for number in again:
            self._printed[number] = rows[number]
        self._printed[top:] = rows[top:]
        self._is_within = is_within
        self._reach = max(top, self._first_in_reach(self._printed))
        return text

    def _measure(self) -> None:
        """Give up what is in reach where the screen has another size: nobody knows how it has wrapped its lines."""
        assert self._size_now is not None
        size = self._size_now()
        if size != self._size:
            self._size, self._reach = size, len(self._printed)

    def _goes_within(self, count: int) -> bool:
        """Return whether the cursor is to stand behind the last of so many rows.

        It does not go up and down with an output that moves within its rows.
        """
        at = self._terminal.row
        return self._is_within and at < count if count == len(self._printed) else self._reach < count == at + 1

    def _grown(self, rows: Sequence[TerminalRow]) -> str:
        """Print what the row in which the cursor stands has more, however long it is."""
        last = len(self._printed) - 1
        if not self._is_within or not 0 <= last < len(rows):
            return ""
        rest = _beyond(self._printed[last], rows[last])
        if rest is None:
            return ""
        self._printed[last] = rows[last]
        return self._words(rows[last]._replace(spans=rest))

    def _over(self, rows: Sequence[TerminalRow], *, is_within: bool) -> str:
        """Print over what is in reach, from the first row on that has changed, and what is new below it."""
        was, count = self._printed, len(rows)
        same = self._reach
        while same < min(len(was), count) and was[same].spans == rows[same].spans:
            same += 1
        if same >= len(was):
            begin = "\n" if self._is_within and (count > same or not is_within) else ""
            return begin + self._below(rows[same:], is_within=is_within) if count > same else begin
        if is_within and same == count > self._reach:
            same -= 1
        if count < len(was) or any(self._height(row) > 1 for row in (*was[same:], *rows[same:])):
            return self._away(same) + self._below(rows[same:], is_within=is_within)
        lines = [self._line_over(rows, number, is_within=is_within) for number in range(same, count)]
        return self._up_to(same) + "\n".join(lines) + "\n" * (not is_within)

    def _line_over(self, rows: Sequence[TerminalRow], number: int, *, is_within: bool) -> str:
        words, was = self._words(rows[number]), self._printed[number : number + 1]
        if was and was[0].spans == rows[number].spans:
            return words if is_within and number == len(rows) - 1 else ""
        return f"{_ERASE_ROW * bool(was)}{words}"

    def _below(self, rows: Sequence[TerminalRow], *, is_within: bool) -> str:
        return "\n".join(map(self._words, rows)) + "\n" * (bool(rows) and not is_within)

    def _away(self, number: int) -> str:
        """Return what takes the printed rows from one on away, for something else to be printed there."""
        if number < len(self._printed):
            # Its first row by itself, and then what is below: tmux keeps a screen in its history that is erased as a
            # whole.
            below = f"{_DOWN}{_ERASE_BELOW}{_UP}" if self._lines_from(number) > 1 else ""
            return f"{self._up_to(number)}{_ERASE_ROW}{below}"
        return "\n" if self._is_within else ""

    def _up_to(self, number: int) -> str:
        steps = self._lines_from(number) - self._is_within
        return f"\r\x1b[{steps}A" if steps else "\r"

    def _lines_from(self, number: int) -> int:
        return sum(map(self._height, self._printed[number:]))

    def _first_in_reach(self, rows: Sequence[TerminalRow]) -> int:
        """Return from which row on all are on the screen, if they are printed and the cursor stands below them."""
        number, left = len(rows), self._size.lines - 1
        while number and (left := left - self._height(rows[number - 1])) >= 0:
            number -= 1
        return number

    def _height(self, row: TerminalRow) -> int:
        return _lines_of(row.text, self._size.columns)

    def _words(self, row: TerminalRow) -> str:
        return printed_row(row, has_colours=self._has_colours)

    # -- beside something else -------------------------------------------------------------------------------------

    @property
    def is_changing(self) -> bool:
        """Whether the last rows on the screen still change, as far as anybody knows."""
        return self._first_changing() < len(self._printed)

    def _first_changing(self) -> int:
        """Return where the rows begin at the end that still change: a line that goes on, or those of a display."""
        last = len(self._printed) - 1
        first = last
        while first > 0 and self._printed[first].is_tied:
            first -= 1
        return max(first if first < last or self._is_within else last + 1, self._reach)

    def set_aside(self) -> str:
        """Return what makes place for something else on the screen: the rows that still change come again below it."""
        if self._size_now is None:
            return ""
        self._measure()
        first = self._first_changing()
        text = self._away(first)
        self.is_aside = self.is_aside or first < len(self._printed)
        del self._printed[first:]
        self.leave()
        return text

    def leave(self) -> bool:
        """Give up what is in reach: something else is printed below it; return whether the cursor is within a line."""
        was, self._is_within = self._is_within, False
        self._reach = len(self._printed)
        return was


class FollowedOutput:
    """Makes of the streams of an output, as they come in turn, what is printed.

    Args:
        has_colours, size: As for its rows.
        now: Returns the time in seconds.
    """

    def __init__(self, *, has_colours: bool, size: Size | None, now: Callable[[], float]) -> None:
        self._has_colours, self._size, self._now = has_colours, size, now
        self._streams: dict[str, FollowedRows] = {}
        self._last: FollowedRows | None = None
        self._looked_at = now()

    def feed(self, stream: str, data: bytes) -> str:
        """Return what is printed of the next bytes of a stream."""
        if stream not in self._streams:
            self._streams[stream] = FollowedRows(has_colours=self._has_colours, size=self._size)
        rows = self._streams[stream]
        return self._turn_to(rows) + rows.feed(data) + self._back() + self.quiet()

    def _turn_to(self, rows: FollowedRows) -> str:
        last, self._last = self._last, rows
        return "" if last in (None, rows) else last.set_aside()

    def _back(self) -> str:
        """Return what shows again what was set aside, if nothing stands there that still changes itself."""
        assert self._last is not None
        aside = next((rows for rows in (self._last, *self._streams.values()) if rows.is_aside), None)
        return "" if aside is None or self._last.is_changing else self._turn_to(aside) + aside.feed(b"")

    def within_s(self) -> float | None:
        """How long whoever sleeps may sleep before `quiet` is called; None where that is all one."""
        if not any(rows.holds for rows in self._streams.values()):
            return None
        return max(0.0, self._looked_at + QUIET_S - self._now())

    def quiet(self) -> str:
        """Return what is printed since it has not changed for a while."""
        if self._now() < self._looked_at + QUIET_S:
            return ""
        self._looked_at = self._now()
        return "".join(rows.look() for rows in self._streams.values() if rows.holds)

    def beside(self, text: str) -> str:
        """Return what prints something else, of whole lines: above what still changes."""
        if self._last is None:
            return text
        return self._last.set_aside() + text + self._back()

    def leave(self) -> str:
        """Return what is printed before others print: whole rows that are held, and the end of the begun line."""
        held = "".join(rows.give() for rows in self._streams.values() if rows.holds)
        return held + "\n" * (self._last is not None and self._last.leave())

    def end(self) -> str:
        """Return what is printed at the end of the output."""
        last = [] if self._last is None else [self._last]
        others = [rows for rows in self._streams.values() if rows not in last]
        return "".join(self._turn_to(rows) + rows.feed(b"", is_last=True) for rows in [*others, *last])


def _lines_of(text: str, columns: int) -> int:
    """Return how many lines of a screen a row takes: a wide character does not stand half in one.

    >>> _lines_of("", 3), _lines_of("abc", 3), _lines_of("abcd", 3), _lines_of("a中中", 3), _lines_of("中中", 3)
    (1, 1, 2, 2, 2)
    """
    if text.isascii():
        return max(1, -(-len(text) // columns))
    lines, used = 1, 0
    for one in text:
        cells = cells_wide(one)
        if used + cells > columns:
            lines, used = lines + 1, 0
        used += cells
    return lines


def _beyond(was: TerminalRow, row: TerminalRow) -> tuple[StyledText, ...] | None:
    """Return what a row has behind all of what it was; None where it is not that any more."""
    left, begun, rest = len(was.text), list[StyledText](), list[StyledText]()
    for text, style in row.spans:
        begun += [StyledText(text[:left], style)] if left else []
        rest += [StyledText(text[left:], style)] if len(text) > left else []
        left = max(left - len(text), 0)
    return tuple(rest) if tuple(begun) == was.spans else None
