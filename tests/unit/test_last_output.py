"""At stake: why a worker failed is one line that can be read anywhere, whatever the worker wrote."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.domain.worker.last_output import LOOKED_AT, MOST_LINES, last_line_in, lines_at_end

PIECES = st.sampled_from([
    b"\x1b[31m", b"\x1b[", b"\x1b]8;;http://x\x07", b"\x1b]0;title\x1b\\", b"\x1b", b"\x9b2K", b"\r", b"\n", b"\r\n",
    b"\x08", b"\0", "é".encode(), "\u202e".encode(), b"\xff", b"word", b" ", b"\t", b"99 %",
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
        ("überall\n".encode("latin-1"), "\ufffdberall"),
        (b"\x1b[2J\x1b[H \r\n", None),
        (b"", None),
    ],
)
def test_the_last_line_is_what_a_person_would_read(wrote: bytes, line: str | None) -> None:
    assert last_line_in(wrote, len(wrote)) == line


def test_a_line_without_its_beginning_says_so() -> None:
    assert lines_at_end(b"half of it\nwhole\n", 5000) == ["whole"]
    assert lines_at_end(b"half of it", 5000) == ["…half of it"]


@given(OUTPUTS, st.integers(0, 10_000))
def test_nothing_in_it_is_obeyed_by_a_terminal(wrote: bytes, more: int) -> None:
    lines = lines_at_end(wrote, len(wrote) + more)
    line = last_line_in(wrote, len(wrote) + more)

    assert len(lines) <= MOST_LINES
    assert not [
        one for text in [*lines, line or ""] for one in text if unicodedata.category(one) == "Cc" and one != "\t"
    ]
    assert line is None or (0 < len(line) <= 300 and line.strip() == line)


@pytest.mark.parametrize("hostile", [b"\x1b]", b"\x1b[0", b"\x1b[0;", b"\x1b", b"\r", b"\x90x", b"\x1bP"])
def test_what_a_worker_writes_cannot_make_the_look_long(hostile: bytes) -> None:
    data = (hostile * LOOKED_AT)[:LOOKED_AT]
    assert len(lines_at_end(data, len(data))) <= 1
