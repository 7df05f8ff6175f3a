"""Shows an output at a terminal as a terminal shows it: as lines, or with no other motion than over the last line.

Nothing of what the output asks a terminal for reaches this one: what is printed are rows, in styles of our own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agentctl.domain.text.terminal_output import StyledText, TerminalOutput, TerminalRow, rows_of_text
from agentctl.interfaces.words.looks.look import SpanLine, TextLook, TextSpan, joined_spans
from agentctl.interfaces.words.looks.span_tables import cells_wide
from agentctl.interfaces.words.looks.terminal_styles import with_styles

_ANEW = "\r\x1b[K"


class PrintedRows:
    """Makes of an output, piece by piece, what is printed.

    Args:
        has_colours: Styles are shown.
        follows: Rows are printed as they come; otherwise as they are in the end.
        columns: Those of the terminal, where a line that is not complete is printed; then what it grows by, or else all
            of it again, over what it was where that fits into a row. None where each is printed once it is complete.
    """

    def __init__(self, *, has_colours: bool, follows: bool, columns: int | None = None) -> None:
        self._has_colours, self._follows, self._columns = has_colours, follows, columns
        self._terminal = TerminalOutput()
        #: The row in which the terminal stands, which may be printed over.
        self._open: TerminalRow | None = None
        self._is_open = False

    def feed(self, data: bytes) -> str:
        r"""Return what is printed of the next bytes.

        >>> bar = PrintedRows(has_colours=False, follows=True, columns=80)
        >>> bar.feed(b"1 %"), bar.feed(b"\r2 %\nend\n"), bar.end()
        ('1 %', '\r\x1b[K2 %\nend\n', '')
        """
        terminal = self._terminal
        terminal.note()
        terminal.feed(data)
        if not self._follows:
            return self._lines(terminal.settled())
        rows = [row for row in (*terminal.settled(), *terminal.rows()) if row.at >= terminal.changed]
        is_open = self._is_open = not data.endswith(b"\n")
        if self._columns is None:
            return self._lines(rows[: len(rows) - is_open])
        return "".join(self._printed(rows, is_open=is_open)) if rows else ""

    def end(self) -> str:
        """Return what is printed at the end of the output."""
        if self._follows and self._columns is not None:
            return self.end_line()
        rows = self._terminal.rows()
        self._terminal = TerminalOutput()
        return self._lines(rows if not self._follows else rows[-1:] if self._is_open else [])

    def _lines(self, rows: Iterable[TerminalRow]) -> str:
        return "".join(f"{self._words(row)}\n" for row in rows)

    def end_line(self) -> str:
        """Return what ends the line in which the terminal stands, for something else to be printed."""
        was, self._open = self._open, None
        return "" if was is None else "\n"

    def _printed(self, rows: list[TerminalRow], *, is_open: bool) -> Iterator[str]:
        was, self._open = self._open, None
        first, *further = rows
        is_same = was is not None and was.at == first.at
        rest = _beyond(was, first) if was is not None and is_same else None
        if was is not None and rest is None:
            yield _ANEW if is_same and cells_wide(was.text) < (self._columns or 0) else "\n"
        yield "\n".join(map(self._words, [first if rest is None else first._replace(spans=rest), *further]))
        if is_open:
            self._open = rows[-1]
        else:
            yield "\n"

    def _words(self, row: TerminalRow) -> str:
        return printed_row(row, has_colours=self._has_colours)


def printed_row(row: TerminalRow, *, has_colours: bool) -> str:
    """Return what is printed of a row."""
    return with_styles(row.spans) if has_colours else row.text


def _beyond(was: TerminalRow, row: TerminalRow) -> tuple[StyledText, ...] | None:
    """Return what a row has behind all of what it was; None where it is not that any more."""
    left, begun, rest = len(was.text), list[StyledText](), list[StyledText]()
    for text, style in row.spans:
        begun += [StyledText(text[:left], style)] if left else []
        rest += [StyledText(text[left:], style)] if len(text) > left else []
        left = max(left - len(text), 0)
    return tuple(rest) if tuple(begun) == was.spans else None


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
