"""At stake: why a worker failed is one line that can be read anywhere, whatever the worker wrote."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from agentctl.domain.text.terminal_output import TerminalOutput
from agentctl.domain.worker.last_output import LOOKED_AT, MOST_LINES, last_line_in, lines_at_end

PIECES = st.sampled_from([
    b"\x1b[31m", b"\x1b[", b"\x1b]8;;http://x\x07", b"\x1b]0;title\x1b\\", b"\x1b", b"\x9b2K", b"\r", b"\n", b"\r\n",
    b"\x08", b"\0", b"\x1b[A", b"\x1b[2K", b"\x1b[1G", b"\x1b[J", b"\x1bP",
    "\u4e2d".encode(), "é".encode(), "\u202e".encode(), b"\xff", b"word", b" ", b"\t", b"99 %",
])  # fmt: skip
OUTPUTS = st.lists(PIECES | st.binary(max_size=20), max_size=60).map(b"".join)


@pytest.mark.parametrize(
    ("wrote", "line"),
    [
        (b"GPL in a dependency\n", "GPL in a dependency"),
        (b"\x1b[1;31merror\x1b[0m\x1b[K: no \x1b]8;;https://e.org\x07lib\x1b]8;;\x07\n\n", "error: no lib"),
        (b"Downloading 1%\rDownloading 40%\r", "Downloading 40%"),
        (b"Traceback\n  File x\nValueError: 3\n}\n", "ValueError: 3"),
        (b"===\n---\n", "---"),
        ("überall\n".encode("latin-1"), "\\xfcberall"),
        (b"\x1b]0;make: building\nerror: disk full\n", "error: disk full"),
        (b"starting\n\x1bPx\nfatal: cannot connect\n", "fatal: cannot connect"),
        (b"\x1b[1G\x1b[0K/\x1b[1G\x1b[0K-\x1b[1G\x1b[0Knpm error 404\n", "npm error 404"),
        (b"/ one\x1b[2K\x1b[1G- two", "- two"),
        (b"|\x08/\x08-\x08 \x08error: x\n", "error: x"),
        (b"error: y\n\x1b[31", "error: y"),
        (b"a 1\nb 1\n\x1b[2Aa 2\nb 2\n\x1b[2A\x1b[Jfailed\n", "failed"),
        (b"\x1b[2J\x1b[H \r\n", None),
        (b"", None),
    ],
)
def test_the_last_line_is_what_a_person_would_read(wrote: bytes, line: str | None) -> None:
    assert last_line_in(wrote, len(wrote)) == line


def test_a_line_without_its_beginning_says_so() -> None:
    assert lines_at_end(b"half of it\nwhole\n", 5000) == ["whole"]
    assert lines_at_end(b"half of it", 5000) == ["…of it"], "it may have been half of a word, or of a sequence"
    assert lines_at_end(b"1mof\x1b[m it\n\x1b[0m\n", 5000) == ["…it"]
    assert lines_at_end(b"\xb8\xadx" * 90, 5000) == ["…x" + "\\xb8\\xadx" * 89]
    assert lines_at_end(b"\n\n", 5000) == []


def test_bars_that_are_drawn_over_each_other_are_there_once() -> None:
    frame = "\x1b[3A" + "".join(f"\r\x1b[K{name}: %d\n" for name in "abc")
    data = ("\n\n\n" + "".join(frame % (at, at, at) for at in range(1000)) + "failed\n").encode()
    for size in range(LOOKED_AT - len(frame), LOOKED_AT):
        assert lines_at_end(data[-size:], len(data)) == ["a: 999", "b: 999", "c: 999", "failed"]


@given(OUTPUTS, OUTPUTS, st.integers(1, 200))
@example(b"one\n", b"\x1b[1;31mtwo\n\x1b[mthree\n", 14)
@example("日本\n".encode(), "日本\nx\n".encode(), 4)
@example(b"", b"\x1bP0\n1\n2", 4)
def test_of_the_end_are_the_lines_that_all_of_the_output_has_there(above: bytes, below: bytes, most: int) -> None:
    wrote = b"\n".join([above, below])
    cut = max(0, len(wrote) - most)
    begin = wrote.find(b"\n", cut) + 1 if cut else 0
    terminal = TerminalOutput()
    terminal.feed(wrote)
    rows = [row for row in (*terminal.settled(), *terminal.rows()) if row.at >= begin]
    assume(not cut or (begin and not any(row.is_tied for row in rows)))
    lines = "\n".join(row.text.rstrip() for row in rows).rstrip("\n").split("\n")
    assume(any(lines))
    assert lines_at_end(wrote[cut:], len(wrote)) == lines[-MOST_LINES:]


@given(OUTPUTS, st.integers(0, 10_000))
def test_nothing_in_it_is_obeyed_by_a_terminal(wrote: bytes, more: int) -> None:
    lines = lines_at_end(wrote, len(wrote) + more)
    line = last_line_in(wrote, len(wrote) + more)

    assert len(lines) <= MOST_LINES
    assert not [
        one for text in [*lines, line or ""] for one in text if unicodedata.category(one) == "Cc" and one != "\t"
    ]
    assert line is None or (0 < len(line) <= 300 and line.strip() == line)


@pytest.mark.parametrize(
    "hostile", [b"\x1b]", b"\x1b[0", b"\x1b[0;", b"\x1b", b"\r", b"\x90x", b"\xc2\x90x", b"\x1bP", b"\x08"]
)
def test_what_a_worker_writes_cannot_make_the_look_long(hostile: bytes) -> None:
    data = (hostile * LOOKED_AT)[:LOOKED_AT]
    assert len(lines_at_end(data, len(data))) <= 1
