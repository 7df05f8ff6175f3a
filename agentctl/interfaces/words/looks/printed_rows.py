"""Prints an output at a terminal as a terminal shows it, with no other motion than over the line that is printed last.

Nothing of what the output asks a terminal for reaches this one: what is printed are rows, in styles of our own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agentctl.domain.text.terminal_output import StyledText, TerminalOutput, TerminalRow

_USUAL = "\x1b[0m"
_ANEW = "\r\x1b[K"
_CODES = {"bold": "1", "dim": "2", "italic": "3", "underline": "4", "inverse": "7", "strike": "9"}


class PrintedRows:
    """Makes of an output, piece by piece, what is printed.

    Args:
        has_colours: Styles are shown.
        follows: Rows are printed as they come; otherwise as they are in the end.
        columns: Those of the terminal, where a line that is not complete is printed, and over again; None where each is
            printed once it is complete.
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
        if was is not None:
            is_same = was.at == rows[0].at and len(was.text) < (self._columns or 0)
            yield _ANEW if is_same else "\n"
        yield "\n".join(map(self._words, rows))
        if is_open:
            self._open = rows[-1]
        else:
            yield "\n"

    def _words(self, row: TerminalRow) -> str:
        return with_styles(row.spans) if self._has_colours else row.text


def with_styles(spans: Iterable[StyledText]) -> str:
    r"""Return spans as a terminal takes them.

    >>> with_styles([StyledText("a"), StyledText("b", "bold f1 b200")])
    'a\x1b[1;31;48;5;200mb\x1b[0m'
    """
    return "".join(f"\x1b[{';'.join(map(_code, style.split()))}m{text}{_USUAL}" if style else text
                   for text, style in spans)  # fmt: skip


def _code(word: str) -> str:
    known = _CODES.get(word)
    if known is not None:
        return known
    base, colour = 30 if word[0] == "f" else 40, word[1:]
    if colour.startswith("#"):
        return ";".join(map(str, (base + 8, 2, *bytes.fromhex(colour[1:]))))
    number = int(colour)
    return str(base + number) if number < 8 else str(base + 52 + number) if number < 16 else f"{base + 8};5;{number}"
