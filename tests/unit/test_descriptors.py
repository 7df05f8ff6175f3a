"""At stake: everything is written and read, in order, also where somebody has made a pipe non-blocking."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

from agentctl.adapters.descriptors import read_patiently, write_patiently, write_some
from agentctl.adapters.files import write_all

#: More than any pipe holds.
MUCH = os.urandom(1 << 20) * 3


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Make a pipe, neither of whose ends blocks."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    with open(reading, "rb"), open(writing, "wb"):
        yield reading, writing


def test_all_of_the_data_goes_through_a_pipe_that_does_not_block(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    writer = threading.Thread(target=write_patiently, args=(writing, MUCH))
    writer.start()
    found = b""
    while len(found) < len(MUCH):
        found += read_patiently(reading, 1 << 16)
    writer.join()
    assert found == MUCH


def test_the_end_of_a_pipe_is_read_as_nothing() -> None:
    reading, writing = os.pipe()
    os.close(writing)
    assert read_patiently(reading, 10) == b""
    os.close(reading)


def test_what_a_pipe_does_not_take_now_is_kept_for_later(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    unwritten, found = bytearray(MUCH), []
    while not write_some(writing, unwritten):
        found.append(os.read(reading, len(MUCH)))
    found.append(os.read(reading, len(MUCH)))
    assert b"".join(found) == MUCH
    assert not unwritten
    assert write_some(writing, unwritten)


def test_a_reader_that_is_gone_is_an_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with pytest.raises(BrokenPipeError):
        write_patiently(writing, b"x")
    os.close(writing)


def test_a_refused_write_is_an_error_or_goes_on(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    found: list[bytes] = []
    with pytest.raises(BlockingIOError):
        write_all(writing, MUCH)
    os.read(reading, len(MUCH))
    write_all(writing, MUCH, lambda _: found.append(os.read(reading, len(MUCH))))
    found.append(os.read(reading, len(MUCH)))
    assert b"".join(found) == MUCH
