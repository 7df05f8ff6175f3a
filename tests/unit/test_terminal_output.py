"""At stake: what programs print is shown as a terminal shows it, and nothing of it can do more than be read."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from itertools import pairwise
from time import process_time

import pyte
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentctl.domain.text.terminal_output import (
    COLUMNS,
    ROWS,
    StyledText,
    TerminalOutput,
    TerminalRow,
    rows_of_text,
    without_styles,
)

_STYLE = re.compile(
    r"((bold|dim|italic|underline|inverse|strike|[fb]([0-9]{1,3}|#[0-9a-f]{6}))( |$))*", re.ASCII
)  # fmt: skip
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

#: What programs print, in pieces that a chunk may divide.
_SEQUENCES = [
    "\r", "\b", "\t", "\n", "\r\n", "\x1b[K", "\x1b[1K", "\x1b[2K", "\x1b[G", "\x1b[3G", "\x1b[2C", "\x1b[2D",
    "\x1b[A", "\x1b[2A", "\x1b[F", "\x1b[J", "\x1b[m", "\x1b[1m", "\x1b[31m", "\x1b[42m", "\x1b[0;4;95m",
    "\x1b[38;5;200m", "\x1b[48;2;1;2;3m", "\x1b[22;39;49m",
]  # fmt: skip
_OTHERS = [
    "\x1b[B", "\x1b[E", "\x1b[?25l", "\x1b[>4;2m", "\x1b[2J", "\x1b[H", "\x1b]0;title\x07", "\x1bP1$r\x1b\\", "\x1b(0",
    "\x1b]8;;http://x\x1b\\", "\x1b7", "\x1bc", "\x1b[999999999999G", "\x1b[99999999C", "\x1b[38;5", "\x1b]", "\x1b",
    "\x9b31m", "\x9d", "\x07", "\x00", "\x18", "\u202e", "\u200b", "\u0301", "\ufeff", "\x1b_G", "\x1b[38:2::1:2:3m",
    "\x1b[4:3m", "\x1b[1;;;;m", "日本", "\U0001f600",
]  # fmt: skip
texts = st.lists(st.one_of(st.sampled_from(_SEQUENCES + _OTHERS), st.text(max_size=5), st.just("word"))).map("".join)


def of_chunks(chunks: Iterable[bytes]) -> list[TerminalRow]:
    terminal = TerminalOutput()
    found: list[TerminalRow] = []
    for chunk in chunks:
        terminal.feed(chunk)
        found += terminal.settled()
    return found + terminal.rows()


@pytest.mark.parametrize(
    ("printed", "rows"),
    [
        ("Downloading 1 %\rDownloading 58 %\rDownloading 100 %", ["Downloading 100 %"]),
        ("\x1b[?25l\x1b[2K\x1b[1G⠋ installing\x1b[K\x1b[2K\x1b[1G⠙ installed", ["⠙ installed"]),
        ("src\x1b[K:\x1b[K1\x1b[K:export \x1b[01;31m\x1b[Kold\x1b[m\x1b[K = 1\n", ["src:1:export old = 1"]),
        ("one\ntwo\n\x1b[2A\x1b[2KONE\n\x1b[2KTWO\n", ["ONE", "TWO"]),
        ("a: 1\nb: 1\nc: 1\n\x1b[3A\x1b[Jdone\n", ["done"]),
        ("\x1b]8;;https://example.org\x1b\\the link\x1b]8;;\x1b\\ ends", ["the link ends"]),
        ("\x1b]0;never closed\nwhat follows", ["", "what follows"]),
        ("\x1b[8mhidden\x1b[m", ["hidden"]),
        ("日本\bX", ["日 X"]),
        ("abc\x1b[10Gd\te", ["abc      d      e"]),
        ("a\u202eb\x9b1mc", ["a\\u202ebc"]),
        ("e\u0301" + "\u0301" * 50, ["e" + "\u0301" * 8]),
        ("", []),
        ("\n\n", ["", ""]),
    ],
)
def test_output_is_shown_as_a_terminal_shows_it(printed: str, rows: list[str]) -> None:
    assert [row.text for row in rows_of_text(printed)] == rows


@pytest.mark.parametrize(
    ("sequence", "style"),
    [
        ("1;31", "bold f1"), ("2;3;4;7;9", "dim italic underline inverse strike"), ("97;101", "f15 b9"),
        ("38;5;255;48;5;0", "f255 b0"), ("38;2;255;0;16", "f#ff0010"), ("38:2::255:0:16", "f#ff0010"),
        ("38:5:7", "f7"), ("58;5;1;32", "f2"), ("4:0", ""), ("4:3", "underline"), ("31;0", ""), ("31;", ""),
        ("1;22", ""), ("38;5;256", ""), ("38;5", ""), ("38", ""), ("38;2;1;2", ""), ("8", ""),
        ("999999999999;31", "f1"),
    ],
)  # fmt: skip
def test_styles_are_words(sequence: str, style: str) -> None:
    (row,) = rows_of_text(f"\x1b[{sequence}mx")
    assert row.spans == (("x", style),)


def test_bytes_that_are_no_text_are_spelled_out() -> None:
    assert [row.text for row in of_chunks([b"caf\xe9 \xff\n", b"\xe2\x82"])] == ["caf\\xe9 \\xff"]


@given(texts)
@example("\x1b]\x1b\x1b[31m\x1b\\x")
def test_nothing_is_left_but_text_and_known_styles(text: str) -> None:
    for row in rows_of_text(text):
        assert not _CONTROLS.search(row.text)
        assert all(_STYLE.fullmatch(span.style) and span.text for span in row.spans)


@given(texts, st.randoms(use_true_random=False))
def test_it_is_the_same_however_it_is_cut(text: str, random: object) -> None:
    data = text.encode("utf-8", "replace") + b"\xf0\x9f\x98\x80\xff"
    places = sorted(random.randrange(len(data) + 1) for _ in range(6))  # type: ignore[attr-defined]
    chunks = [data[begin:end] for begin, end in pairwise([0, *places, len(data)])]
    assert of_chunks(chunks) == of_chunks([data]) == of_chunks(bytes([byte]) for byte in data)


@given(texts, texts)
def test_whoever_begins_with_a_row_sees_it_as_whoever_began_before(above: str, below: str) -> None:
    data = f"{above}\n{below}".encode("utf-8", "replace")
    rows = of_chunks([data])
    for row in rows:
        if not any(one.is_tied for one in rows if one.at >= row.at):
            terminal = TerminalOutput(row.at, row.pen)
            terminal.feed(data[row.at :])
            assert terminal.rows()[0]._replace(is_continued=row.is_continued) == row


def _cell_of(char: object) -> tuple[object, ...]:
    """Return a cell of pyte as it looks."""
    data, fg, bg, bold, italic, under, strike, reverse = char[:8]  # type: ignore[index]
    return data, fg, bg, bold, italic, under, strike, reverse


_NAMES = ("black", "red", "green", "brown", "blue", "magenta", "cyan", "white")
_PALETTE = (*_NAMES, *(f"bright{name}" for name in _NAMES))


def _looks(style: str) -> tuple[object, ...]:
    words = style.split()
    colours = {"f": "default", "b": "default"}
    for word in words:
        if word[0] in "fb" and word[1:2] in (*"0123456789#",):
            number = word[1:]
            if number.startswith("#"):
                colours[word[0]] = number[1:]
            else:
                colours[word[0]] = _PALETTE[int(number)] if int(number) < 16 else pyte.graphics.FG_BG_256[int(number)]
    flags = tuple(name in words for name in ("bold", "italic", "underline", "strike", "inverse"))
    return colours["f"], colours["b"], *flags


_WIDE = 90


@settings(max_examples=60)
@given(st.lists(st.one_of(st.sampled_from(_SEQUENCES), st.text("abé ", max_size=4)), max_size=10).map("".join))
def test_it_is_what_another_terminal_shows(text: str) -> None:
    lines = 2 + text.count("\n")
    screen = pyte.Screen(_WIDE, lines)
    screen.set_mode(pyte.modes.LNM)  # A newline goes to the beginning of the next line, as a terminal's driver has it.
    pyte.Stream(screen).feed(text)
    rows = rows_of_text(text)
    for y in range(lines):
        theirs = [_cell_of(screen.buffer[y][x]) for x in range(_WIDE)]
        ours: list[tuple[object, ...]] = []
        for span in rows[y].spans if y < len(rows) else ():
            ours += [(character, *_looks(span.style)) for character in span.text]
        blank = (" ", "default", "default", False, False, False, False, False)
        ours += [blank] * (_WIDE - len(ours))
        # A blank that was never written has no style here, and there that of what erased it.
        assert [one[0] for one in ours] == [one[0] for one in theirs], (y, rows)
        assert all(one == other for one, other in zip(ours, theirs, strict=True) if one[0] not in (" ", "")), (y, rows)


@pytest.mark.parametrize(
    "piece",
    [b"x", b"\rDownloading 23 %", b"\x1b[", b"\x1b]", b"\x1b[999999999Gx", b"\x1b[31mx\x1b[m", b"\x1b[A\n",
     "e\u0301".encode(), "日".encode(), b"\x1b[1;", b"\xff", b"\x1b]8;;", b"\x08a", b"\n\x1b[A"],
)  # fmt: skip
def test_time_is_linear_and_memory_is_bounded(piece: bytes) -> None:
    def take(count: int) -> float:
        began, terminal = process_time(), TerminalOutput()
        for _ in range(count):
            terminal.feed(piece * (4_000 // len(piece)))
            terminal.settled()
        rows = terminal.rows()
        assert len(rows) <= ROWS
        assert all(len(row.text) <= COLUMNS * 9 for row in rows)
        assert sys.getsizeof(terminal._held) < 2000
        return process_time() - began

    take(1)
    assert take(20) < 20 * 10 * max(take(4) / 4, 0.002)


@pytest.mark.parametrize(
    ("output", "shown"),
    [("日\rx", "x "), ("日\x1b[2G\x1b[K", " "), ("日\u0301\x1b[2Gx", " x"), ("a日b\x1b[3GX", "a Xb")],
)
def test_half_of_a_wide_character_is_a_blank(output: str, shown: str) -> None:
    assert rows_of_text(output)[0].text == shown


@pytest.mark.parametrize("mark", "<=>?")
def test_a_private_sequence_is_no_style(mark: str) -> None:
    assert rows_of_text(f"\x1b[31m\x1b[{mark}1mx")[0].spans == (StyledText("x", "f1"),)


def test_who_moves_right_gets_to_the_edge_of_a_wide_window_or_as_far_as_was_written() -> None:
    assert rows_of_text("\x1b[4096Gx")[0].text == " " * 511 + "x"
    assert rows_of_text("y" * 600 + "\r\x1b[9999Cx")[0].text == "y" * 600 + "x"


@pytest.mark.parametrize(
    "piece",
    ["\x1b[4096Gx\n", "\x1b[4000C\u65e5\n", "x\x1b[4096G\x1b[2K\u65e5\x1b[2K", "\n\n\x1b[A\x1b[4096Gx\x1b[Bx\x1b[Bx\n"],
)
def test_a_few_bytes_make_no_row_of_thousands_of_cells(piece: str) -> None:
    terminal = TerminalOutput()
    terminal.feed((piece * 1000).encode())
    assert sum(len(row.text) for row in (*terminal.settled(), *terminal.rows())) <= 70 * len(piece) * 1000


@given(st.lists(st.sampled_from(["word", "\x1b[31m", "\x1b[m", "\x1b[K", "\n", "é", "\r\n", "\r", "\x1b[G"])))
def test_what_is_only_styled_need_not_be_interpreted(parts: list[str]) -> None:
    text = "".join(parts)
    found = without_styles(text.encode())
    if found is not None:
        assert found.decode().removesuffix("\n") == "\n".join(row.text for row in rows_of_text(text))
