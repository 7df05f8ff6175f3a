"""At stake: what a program says is split into the same lines, however it was cut on its way, and in bounded memory."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from agentctl.adapters.lines import TOO_LONG, LineBuffer

CHUNKS = st.lists(st.lists(st.sampled_from([b"\n", b"\r", b"a", b"bc", b"\xff"])).map(b"".join))


@given(chunks=CHUNKS)
def test_lines_are_those_of_the_whole(chunks: list[bytes]) -> None:
    buffer = LineBuffer()
    *lines, begun = b"".join(chunks).split(b"\n")
    assert [line for chunk in chunks for line in buffer.feed(chunk)] == lines
    assert buffer.has_begun == (begun != b"")
    assert buffer.rest() == begun
    assert (buffer.has_begun, buffer.rest()) == (False, b"")


@given(chunks=CHUNKS, longest=st.integers(0, 5))
@example(chunks=[b"abc", b"d", b"ef", b"\nx\n"], longest=3)
def test_each_line_that_is_too_long_is_told_once(chunks: list[bytes], longest: int) -> None:
    buffer = LineBuffer(longest)
    *lines, begun = b"".join(chunks).split(b"\n")
    wanted = [line if len(line) <= longest else TOO_LONG for line in lines]
    found = [line for chunk in chunks for line in buffer.feed(chunk)]
    assert found == wanted + [TOO_LONG] * (len(begun) > longest)
    assert buffer.rest() == (begun if len(begun) <= longest else b"")


def test_an_endless_line_is_told_before_its_end_and_takes_no_memory() -> None:
    buffer = LineBuffer(10)
    assert list(buffer.feed(b"x" * 11)) == [TOO_LONG]
    assert not [line for _ in range(1000) for line in buffer.feed(b"x" * 1000)]
    assert buffer._parts == []
    assert list(buffer.feed(b"\nshort\n")) == [b"short"]
