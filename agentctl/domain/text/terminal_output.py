r"""What a terminal would show of the output of a program: rows of text in known styles, and nothing else.

Interpreted are colours and styles, what moves within a line (carriage return, backspace, tab, column), what erases in a
line, and what moves up and down over the last rows, as displays of several progress bars do. Links keep their text.
Everything else that is meant for a terminal is dropped without a trace. What turns the direction of text is spelled
out, as everywhere.

It is a terminal of `COLUMNS` columns that forgets nothing: what leaves its `ROWS` last rows is settled. A newline ends
whatever sequence is open, so no output can hide what is in the lines behind it. The work is linear in the output, and
the memory is bounded by the rows that are not settled.

A style is words with blanks between them: `bold dim italic underline inverse strike`, `f1` for colour 1 of 256 of the
text, `b1` for one behind it, `f#0a0b0c` for any colour. It is empty for usual text.
"""

from __future__ import annotations

import codecs
import re
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby
from unicodedata import category, east_asian_width

from agentctl.domain.text.plaintext import ESCAPES, plain, whole
from agentctl.lean import NamedTuple

#: A longer row goes on in the next one.
COLUMNS = 4096
#: So far right gets who moves there, as at the right edge of a wide window, or as far as the row was written. Else a
#: few bytes would make a row of thousands of cells, and a megabyte of them half a gigabyte.
_REACH = 512
#: So many rows can still change: further up no program gets.
ROWS = 64
_TAB = 8
#: A longer sequence is not understood; of more marks on a character the first ones are kept.
_MOST_PARAMETERS, _MOST_MARKS = 512, 8
#: So much of a line is taken at once.
_PIECE = 1 << 16
_STRING = r"(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])"
_CSI = rf"(?:\x1b\[|\x9b)([0-?]{{0,{_MOST_PARAMETERS}}})([ -/]{{0,8}})"
_TOKEN = re.compile(
    rf"""
    (?P<text> [^\x00-\x1f\x7f-\x9f]+ )
    | {_CSI} (?P<final> [@-~] )
    | {_STRING} [^\x07\x1b\x9c]* (?: \x07 | \x9c | \x1b\\ | (?=\x1b.) )
    | \x1b (?![\[\]PX^_]) [ -/]{{0,8}} [0-~]
    | (?P<control> [\r\x08\t] )
    | [\x00-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]+
    """,
    re.VERBOSE | re.DOTALL,
)
#: The beginning of a sequence at the end of what has come.
_OPEN = re.compile(rf"{_CSI} \Z | \x1b (?![\[\]PX^_]) [ -/]{{0,8}} \Z", re.VERBOSE)
_OPEN_STRING = re.compile(rf"({_STRING}) [^\x07\x1b\x9c]* (\x1b?) \Z", re.VERBOSE)
_BROKEN = re.compile(rf"{_CSI} | {_STRING} [^\x07\x1b\x9c]* | \x1b[ -/]{{0,8}} | .", re.VERBOSE | re.DOTALL)
#: Bytes of a line that are more than text.
_MORE_THAN_TEXT = re.compile(rb"[\x00-\x1f\x7f]")
#: Colours, styles, and the erasing of what is behind: where there is nothing else, the rest is what is shown.
_STYLES = re.compile(rb"\x1b\[(?:[0-9;:]{0,512}m|0?K)")
_CONTROL_IN_LINES = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")
#: The rest of a character, and then of a word, if anything is behind it.
_CUT_WORD = re.compile(rb"[\x80-\xbf]{0,3}(?:\S{0,64}\s+(?=\S))?")
_SPELLED = {code: shown for code, shown in ESCAPES.items() if code > 0xFF} | {
    0xDC00 + byte: f"\\x{byte:02x}" for byte in range(0x80, 0x100)
}
_SPELLED_CHARACTERS = frozenset(map(chr, _SPELLED))
_SPELLED_IN_TEXT = re.compile(f"[{''.join(_SPELLED_CHARACTERS)}]")


# -- styles ------------------------------------------------------------------------------------------------------------


class Pen(NamedTuple):
    """What text is written with."""

    #: () for that of the theme, (number,) of 256, or (red, green, blue).
    text: tuple[int, ...] = ()
    behind: tuple[int, ...] = ()
    #: The bits of `_ATTRIBUTES`.
    attributes: int = 0

    @property
    def style(self) -> str:
        """The words for it."""
        return _style(self)


_ATTRIBUTES = ("bold", "dim", "italic", "underline", "inverse", "strike")
_SET = {1: 1, 2: 2, 3: 4, 4: 8, 7: 16, 9: 32, 21: 8}
_RESET = {22: 1 | 2, 23: 4, 24: 8, 27: 16, 29: 32}
_USUAL = Pen()


@lru_cache(4096)
def _style(pen: Pen) -> str:
    words = [word for bit, word in enumerate(_ATTRIBUTES) if pen.attributes >> bit & 1]
    for letter, colour in (("f", pen.text), ("b", pen.behind)):
        if colour:
            words.append(letter + (str(colour[0]) if len(colour) == 1 else "#{:02x}{:02x}{:02x}".format(*colour)))
    return " ".join(words)


@lru_cache(4096)
def _pen_after(pen: Pen, parameters: str) -> Pen:
    """Return the pen after an SGR sequence (ECMA-48 8.3.117, ISO 8613-6 for colours)."""
    groups = [[_number(one) for one in group.split(":")] for group in parameters.split(";")]
    at = 0
    while at < len(groups):
        group = groups[at]
        code = group[0]
        at += 1
        if code in (38, 48, 58):
            if len(group) == 1:
                length = {5: 2, 2: 4}.get(groups[at][0], 1) if at < len(groups) else 0
                colour = _colour([one[0] for one in groups[at : at + length]])
                at += length
            else:
                colour = _colour(group[1:3] if group[1] == 5 else [group[1], *group[-3:]])
            if colour is not None and code != 58:
                pen = pen._replace(text=colour) if code == 38 else pen._replace(behind=colour)
        elif code == 4 and group[1:] == [0]:
            pen = pen._replace(attributes=pen.attributes & ~_RESET[24])
        else:
            pen = _pen_with(pen, code)
    return pen


def _pen_with(pen: Pen, code: int) -> Pen:
    if code == 0:
        return _USUAL
    if code in _SET:
        return pen._replace(attributes=pen.attributes | _SET[code])
    if code in _RESET:
        return pen._replace(attributes=pen.attributes & ~_RESET[code])
    for first, colour in ((30, 0), (90, 8)):
        if first <= code < first + 8:
            return pen._replace(text=(code - first + colour,))
        if first + 10 <= code < first + 18:
            return pen._replace(behind=(code - first - 10 + colour,))
    if code == 39:
        return pen._replace(text=())
    return pen._replace(behind=()) if code == 49 else pen


def _colour(numbers: list[int]) -> tuple[int, ...] | None:
    values = numbers[1:]
    is_one = len(values) == {5: 1, 2: 3}.get(next(iter(numbers), 0)) and max(values) < 256
    return tuple(values) if is_one else None


def _number(digits: str) -> int:
    return min(int(digits[:9]), 1 << 20) if digits.isdecimal() and digits.isascii() else 0


# -- what is shown -----------------------------------------------------------------------------------------------------


class StyledText(NamedTuple):
    """A part of a row, and its style."""

    text: str
    style: str = ""


class TerminalRow(NamedTuple):
    """A row as it is shown."""

    #: Where it began, in bytes: what comes from there on made it, unless it is tied.
    at: int
    spans: tuple[StyledText, ...]
    #: It goes on with the row above, which was full.
    is_continued: bool = False
    #: Something has moved up from it: whoever begins with this row would not know where to.
    is_tied: bool = False
    #: What it began with, for whoever begins here.
    pen: Pen = _USUAL

    @property
    def text(self) -> str:
        """The row without its styles."""
        return "".join(span.text for span in self.spans)


def rows_of_text(text: str, *, is_end: bool = False) -> tuple[TerminalRow, ...]:
    r"""Return what a terminal would show of a text: a whole one, or an end that was cut off, as `rows_of_end` has it.

    >>> [row.text for row in rows_of_text("10 %\r100 %\ndone")], rows_of_text("\x1b[31mred\x1b[m")[0].spans
    (['100 %', 'done'], (StyledText(text='red', style='f1'),))
    """
    return rows_of_end(whole(text).encode(), is_cut=is_end)


def rows_of_end(data: bytes, *, is_cut: bool) -> tuple[TerminalRow, ...]:
    r"""Return what a terminal would show of the end of an output.

    Args:
        data: The end.
        is_cut: There was more before it. Then it is that of its whole lines; if they show nothing, that of the line
            before them, behind a mark and without the word at the cut, which may be the rest of a sequence.

    >>> [row.text for row in rows_of_end(b"1mhalf\n\x1b[1mwhole\x1b[m\n", is_cut=True)]
    ['whole']
    >>> [row.text for row in rows_of_end(b"1mone two\n", is_cut=True)]
    ['…two']
    """
    if not is_cut:
        return _rows_of(data)
    line, _, lines = data.partition(b"\n")
    rows = _rows_of(lines)
    if _is_seen(rows):
        return rows
    word = _CUT_WORD.match(line)
    rows = _rows_of(line[word.end() if word else 0 :])
    return (rows[0]._replace(spans=(StyledText("…"), *rows[0].spans)), *rows[1:]) if _is_seen(rows) else ()


def _is_seen(rows: tuple[TerminalRow, ...]) -> bool:
    return any(row.text.strip() for row in rows)


def _rows_of(data: bytes) -> tuple[TerminalRow, ...]:
    terminal = TerminalOutput()
    terminal.feed(data)
    return (*terminal.settled(), *terminal.rows())


def without_styles(data: bytes) -> bytes | None:
    r"""Return what is shown of lines that have nothing but text, styles and tabs; None if there is more.

    Far faster than to interpret them, for whoever looks for something. Tabs stay, and what would be spelled out.

    >>> without_styles(b"\x1b[1;31m\x1b[Kold\x1b[m new\r\n"), without_styles(b"1 %\r2 %")
    (b'old new\n', None)
    """
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
    if b"\x1b" in data:
        data = _STYLES.sub(b"", data)
    return None if _CONTROL_IN_LINES.search(data) else data


def text_of_lines(data: bytes) -> str | None:
    r"""Return what is shown of lines that have nothing but text, styles and tabs; None if there is more.

    Tabs stay; what is spelled out is. What goes on behind the data is not shown yet.

    >>> text_of_lines(b"\x1b[31m\xff\x1b[m\r\n\xe2\x80\xae"), text_of_lines(b"1 %\r2 %")
    ('\\xff\n\\u202e', None)
    """
    text = without_styles(data)
    if text is None:
        return None
    shown = codecs.utf_8_decode(text, "backslashreplace", False)[0]
    return _SPELLED_IN_TEXT.sub(lambda found: _SPELLED[ord(found[0])], shown)


# -- rows --------------------------------------------------------------------------------------------------------------


class _OpenRow:
    """A row that may still change: spans as long as it was only written on, else its cells."""

    __slots__ = ("_cells", "_spans", "_styles", "at", "is_continued", "is_tied", "pen", "width")

    def __init__(self, at: int, pen: Pen, *, is_continued: bool = False) -> None:
        self.at, self.pen, self.is_continued, self.is_tied = at, pen, is_continued, False
        self.width = 0
        self._spans: list[StyledText] = []
        #: A wide character is in its first cell, and its second one is an empty text.
        self._cells: list[str] | None = None
        self._styles: list[str] = []

    def copy(self) -> _OpenRow:
        """Return a row like this one."""
        made = _OpenRow(self.at, self.pen, is_continued=self.is_continued)
        made.is_tied, made.width, made._spans = self.is_tied, self.width, self._spans.copy()
        made._cells, made._styles = None if self._cells is None else self._cells.copy(), self._styles.copy()
        return made

    def write(self, column: int, text: str, style: str) -> None:
        """Write characters that take a cell each."""
        if self._cells is None and column >= self.width:
            if column > self.width:
                self._spans.append(StyledText(" " * (column - self.width)))
            self._spans.append(StyledText(text, style))
        else:
            self._put(column, list(text), style)
        self.width = max(self.width, column + len(text))

    def write_wide(self, column: int, character: str, style: str) -> None:
        """Write a character that takes two cells."""
        self._put(column, [character, ""], style)
        self.width = max(self.width, column + 2)

    def mark(self, column: int, character: str) -> None:
        """Put a character that takes no cell on the one before a column; it needs one."""
        cells = self._in_cells()
        at = min(column, len(cells)) - 1
        if at > 0 and not cells[at]:
            at -= 1
        if at >= 0 and len(cells[at]) <= _MOST_MARKS:
            cells[at] += character

    def erase(self, begin: int, end: int | None) -> None:
        """Erase the cells from `begin` to before `end`, or all from there on."""
        if end is None or end >= self.width:
            if begin < self.width:
                self._truncate(begin)
        elif begin < end:
            self._put(begin, [" "] * (end - begin), "")

    def _truncate(self, width: int) -> None:
        if not width:
            self._cells, self._spans, self._styles = None, [], []
        else:
            cells = self._in_cells()
            if not cells[width]:
                cells[width - 1] = " "
            del cells[width:], self._styles[width:]
        self.width = width

    def _put(self, column: int, cells: list[str], style: str) -> None:
        old, end = self._in_cells(), column + len(cells)
        if column > len(old):
            self._styles += [""] * (column - len(old))
            old += [" "] * (column - len(old))
        if column < len(old) and not old[column]:
            old[column - 1] = " "
        if end < len(old) and not old[end]:
            old[end] = " "
        old[column:end] = cells
        self._styles[column:end] = [style] * len(cells)

    def _in_cells(self) -> list[str]:
        if self._cells is None:
            self._cells, self._styles = [], []
            for text, style in self._spans:
                self._cells += text
                self._styles += [style] * len(text)
        return self._cells

    def shown(self) -> TerminalRow:
        """Return it as it is shown now."""
        return TerminalRow(self.at, tuple(self._joined()), self.is_continued, self.is_tied, self.pen)

    def _joined(self) -> Iterator[StyledText]:
        if self._cells is None:
            for style, spans in groupby(self._spans, lambda span: span.style):
                yield StyledText("".join(span.text for span in spans), style)
        else:
            at = 0
            for style, same in groupby(self._styles):
                begin, at = at, at + len(list(same))
                yield StyledText("".join(self._cells[begin:at]), style)


class TerminalOutput:
    """Takes an output as it comes, however it is cut.

    Args:
        at: Where it begins, in bytes of its file.
        pen: What it begins with: that of the row that begins there.
    """

    def __init__(self, at: int = 0, pen: Pen = _USUAL) -> None:
        self._end = at
        self._pen = pen
        self._rows = deque((_OpenRow(at, pen),))
        self._y = self._x = 0
        self._settled: list[TerminalRow] = []
        self._changed = at
        #: The beginning of a character, and of a sequence, that go on in what comes next.
        self._bytes, self._held = b"", ""

    def copy(self) -> TerminalOutput:
        """Return one that goes on from here by itself."""
        made = TerminalOutput(self._end, self._pen)
        made._rows = deque(row.copy() for row in self._rows)
        made._y, made._x, made._settled, made._changed = self._y, self._x, self._settled.copy(), self._changed
        made._bytes, made._held = self._bytes, self._held
        return made

    def feed(self, data: bytes) -> None:
        """Take what comes next."""
        lines = data.split(b"\n")
        for line in lines[:-1]:
            self._take_line(line)
        if lines[-1]:
            self._take(lines[-1], is_whole=False)

    def skip_to(self, end: int) -> None:
        """Take nothing of what comes up to an offset, which lies in the same line."""
        self._end, self._bytes, self._held = end, b"", ""

    def pass_lines(self, size: int) -> bool:
        """Pass over whole lines of text alone, of which nobody asks for the rows; return whether that is possible.

        At least `ROWS` lines have to follow, so that nothing moves up to these.
        """
        if self._y < len(self._rows) - 1 or self._x or self._rows[-1].width or self._bytes or self._held:
            return False
        self._rows.pop()
        self._settled += [row.shown() for row in self._rows]
        self._end += size
        self._y, self._rows = 0, deque((_OpenRow(self._end, self._pen),))
        return True

    @property
    def pen(self) -> Pen:
        """What is written with."""
        return self._pen

    def settled(self) -> list[TerminalRow]:
        """Return the rows that have settled since this was asked last."""
        found, self._settled = self._settled, []
        return found

    def rows(self) -> list[TerminalRow]:
        """Return the rows that may still change: without empty ones where it writes, and below that."""
        rows = list(self._rows)
        while len(rows) > self._y and not rows[-1].width:
            rows.pop()
        return [row.shown() for row in rows]

    @property
    def end(self) -> int:
        """Where the output ends by now, in bytes of its file."""
        return self._end

    @property
    def row(self) -> int:
        """Which of `rows` it writes in, or below which it does."""
        return self._y

    @property
    def cells(self) -> int:
        """How many cells the rows have that may still change."""
        return sum(row.width for row in self._rows)

    def note(self) -> None:
        """Begin to note which rows change."""
        self._changed = self._end

    @property
    def changed(self) -> int:
        """Where the first row begins that was changed, or made, since `note`."""
        return self._changed

    # -- lines -----------------------------------------------------------------------------------------------------

    def _take_line(self, line: bytes) -> None:
        row = self._rows[self._y]
        is_fresh = not (self._x or row.width or self._bytes or self._held) and self._y == len(self._rows) - 1
        text = line[:-1] if line[-1:] == b"\r" else line
        if is_fresh and len(text) <= COLUMNS and text.isascii() and not _MORE_THAN_TEXT.search(text):
            if text:
                row.write(0, text.decode("ascii"), self._pen.style)
            self._end += len(line)
        else:
            self._take(line, is_whole=True)
        self._end += 1
        self._x = 0
        self._move_down()

    def _take(self, data: bytes, *, is_whole: bool) -> None:
        """Take a line, or a part of one."""
        for begin in range(0, len(data) or 1, _PIECE):
            piece = self._bytes + data[begin : begin + _PIECE]
            is_last = is_whole and begin + _PIECE >= len(data)
            text, used = _decoded(piece, is_last=is_last)
            self._bytes = piece[used:]
            self._end += len(data[begin : begin + _PIECE])
            self._run(self._held + text, self._end - len(self._bytes), is_last=is_last)

    def _run(self, text: str, end: int, *, is_last: bool) -> None:
        """Carry out decoded text, which ends at an offset; hold what is not complete, unless it is the last."""
        at, where = 0, _Offsets(text, end)
        self._held = ""
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                if not is_last and (held := _unfinished(text, at)) is not None:
                    self._held = held
                    return
                found = _BROKEN.match(text, at)
                at = at + 1 if found is None else found.end()
                continue
            if found["text"] is not None:
                self._write(found["text"], at, where)
            elif found["final"] is not None:
                if not found[3]:
                    self._carry_out(found["final"], found[2])
            elif found["control"] is not None:
                self._move(found["control"])
            at = found.end()

    def _move(self, control: str) -> None:
        if control == "\r":
            self._x = 0
        elif control == "\b":
            self._x = max(0, self._x - 1)
        else:
            self._x = min((self._x // _TAB + 1) * _TAB, COLUMNS - 1)

    def _carry_out(self, final: str, parameters: str) -> None:
        """Carry out a control sequence, if it is one of those that count."""
        if final == "m":
            if not parameters or parameters[0] not in "<=>?":
                self._pen = _pen_after(self._pen, parameters)
            return
        if not parameters.isdecimal() and parameters:
            return
        number = _number(parameters)
        if final in "KJ":
            self._erase(final, number)
        else:
            self._go(final, max(1, number))
        self._x = min(self._x, max(_REACH - 1, self._rows[self._y].width))

    def _go(self, final: str, steps: int) -> None:
        if final in "AF":
            self._move_up(steps)
        elif final in "BE":
            self._y = min(self._y + steps, len(self._rows) - 1)
        if final in "EFG`":
            self._x = min(steps, COLUMNS) - 1 if final in "G`" else 0
        elif final == "C":
            self._x = min(self._x + steps, COLUMNS - 1)
        elif final == "D":
            self._x = max(0, self._x - steps)

    def _erase(self, final: str, number: int) -> None:
        row = self._rows[self._y]
        if final == "K" and number < 3:
            row.erase(0 if number else self._x, self._x + 1 if number == 1 else None)
        elif final == "J" and not number:
            row.erase(self._x, None)
            for y in range(self._y + 1, len(self._rows)):
                self._rows[y].erase(0, None)
        self._changed = min(self._changed, row.at)

    def _move_up(self, steps: int) -> None:
        top = max(0, self._y - steps)
        for y in range(top + 1, self._y + 1):
            self._rows[y].is_tied = True
        self._y = top
        self._changed = min(self._changed, self._rows[top].at)  # Empty rows below it go, unless they are written again.

    def _move_down(self, at: int | None = None) -> None:
        """Move to the next row, making it where there is none; to one that goes on with this one if `at` is given."""
        self._changed = min(self._changed, self._rows[self._y].at)  # An empty one counts once it is left.
        self._y += 1
        if self._y < len(self._rows):
            return
        self._rows.append(_OpenRow(self._end if at is None else at, self._pen, is_continued=at is not None))
        if len(self._rows) > ROWS:
            self._settled.append(self._rows.popleft().shown())
            self._y -= 1

    # -- text ------------------------------------------------------------------------------------------------------

    def _write(self, text: str, place: int, where: _Offsets) -> None:
        """Write text without controls, which is at a place of what is carried out."""
        if text.isascii():
            self._write_narrow(text, place, where)
            return
        for is_narrow, part in _parts(text):
            if is_narrow:
                self._write_narrow(part, place, where)
            else:
                self._write_odd(part, place, where)
            place += len(part)

    def _write_narrow(self, text: str, place: int, where: _Offsets) -> None:
        at, style = 0, self._pen.style
        while at < len(text):
            if self._x >= COLUMNS:
                self._wrap(where.of(place + at))
            part = text[at : at + COLUMNS - self._x]
            row = self._rows[self._y]
            row.write(self._x, part, style)
            self._changed = min(self._changed, row.at)
            self._x += len(part)
            at += len(part)

    def _write_odd(self, character: str, place: int, where: _Offsets) -> None:
        """Write a character that takes two cells, or none, or that is spelled out."""
        width, style = _width(character), self._pen.style
        if self._x + width > COLUMNS and width:
            self._wrap(where.of(place))
        row = self._rows[self._y]
        if character in _SPELLED_CHARACTERS:
            row.write(self._x, _SPELLED[ord(character)], style)
        elif width:
            row.write_wide(self._x, character, style)
        else:
            row.mark(self._x, character)
        self._x += width
        self._changed = min(self._changed, row.at)

    def _wrap(self, at: int) -> None:
        self._x = 0
        self._move_down(at)


class SpelledOutput:
    """Takes an output as `TerminalOutput` does, and interprets nothing: control characters are spelled out.

    Args:
        at: Where it begins, in bytes of its file.
        pen: Without a meaning here.
    """

    def __init__(self, at: int = 0, pen: Pen = _USUAL) -> None:
        self.end, self.pen = at, pen
        self._settled: list[TerminalRow] = []
        self._open, self._is_continued = b"", False

    def feed(self, data: bytes) -> None:
        """Take what comes next."""
        self.end += len(data)
        lines = (self._open + data).split(b"\n")
        self._open = lines.pop()
        at = self.end - len(self._open) - sum(len(line) + 1 for line in lines)
        for line in lines:
            self._settle(line, at)
            at += len(line) + 1
            self._is_continued = False
        while len(self._open) > COLUMNS + 4:
            size = _cut(self._open)
            self._settle_piece(self._open[:size], at)
            self._open, self._is_continued, at = self._open[size:], True, at + size

    def _settle(self, line: bytes, at: int) -> None:
        while len(line) > COLUMNS:
            size = _cut(line)
            self._settle_piece(line[:size], at)
            line, at, self._is_continued = line[size:], at + size, True
        self._settle_piece(line, at)

    def _settle_piece(self, piece: bytes, at: int) -> None:
        self._settled.append(_spelled_row(piece, at, is_continued=self._is_continued))

    def skip_to(self, end: int) -> None:
        """Take nothing of what comes up to an offset."""
        self.end, self._open = end, b""

    def pass_lines(self, size: int) -> bool:
        """Pass over whole lines; return whether that is possible."""
        if self._open or self._is_continued:
            return False
        self.end += size
        return True

    def settled(self) -> list[TerminalRow]:
        """Return the rows that have settled since this was asked last."""
        found, self._settled = self._settled, []
        return found

    def rows(self) -> list[TerminalRow]:
        """Return the row that may still change, if there is one."""
        at = self.end - len(self._open)
        return [_spelled_row(self._open, at, is_continued=self._is_continued)] if self._open else []


def _cut(line: bytes) -> int:
    """Return where a long line is cut: at most so far on, between two characters."""
    size = COLUMNS
    while size > COLUMNS - 4 and line[size] & 0xC0 == 0x80:
        size -= 1
    return size


def _spelled_row(piece: bytes, at: int, *, is_continued: bool) -> TerminalRow:
    text = plain(piece.decode("utf-8", "backslashreplace"), keep="\t").expandtabs()
    return TerminalRow(at, (StyledText(text),) if text else (), is_continued)


class _Offsets:
    """The offsets of places in a text that ends at an offset; asked from its beginning to its end."""

    def __init__(self, text: str, end: int) -> None:
        self._text, self._is_ascii = text, text.isascii()
        self._place, self._offset = len(text), end

    def of(self, place: int) -> int:
        """Return the offset of a place."""
        if self._is_ascii:
            return self._offset - (self._place - place)
        if self._place == len(self._text):
            self._offset -= len(_encoded(self._text[place:]))
        else:
            self._offset += len(_encoded(self._text[self._place : place]))
        self._place = place
        return self._offset


def _decoded(data: bytes, *, is_last: bool) -> tuple[str, int]:
    """Return the text of bytes, and how many of them; what is not UTF-8 becomes a surrogate for each byte."""
    return codecs.utf_8_decode(data, "surrogateescape", is_last)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _unfinished(text: str, at: int) -> str | None:
    """Return what to hold of a sequence that goes on behind the text; of a string only how it begins and ends."""
    found = _OPEN.match(text, at)
    if found is not None:
        return found[0]
    found = _OPEN_STRING.match(text, at)
    return None if found is None else found[1] + found[2]


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    """Yield the parts of a text: those of characters that take a cell each, and each other character."""
    begin = 0
    for at, one in enumerate(text):
        if one >= "\u0300" and _width(one) != 1:  # The first mark.
            if begin < at:
                yield True, text[begin:at]
            yield False, one
            begin = at + 1
    if begin < len(text):
        yield True, text[begin:]


@lru_cache(8192)
def _width(character: str) -> int:
    """Return how many cells terminals give a character."""
    code = ord(character)
    if code in _SPELLED:
        return len(_SPELLED[code])
    if category(character) in ("Mn", "Me", "Cf") or 0x1160 <= code <= 0x11FF or code == 0x200B:
        return 0
    return 2 if east_asian_width(character) in "WF" else 1
