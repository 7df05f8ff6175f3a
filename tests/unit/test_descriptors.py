"""At stake: everything is written and read, in order, also where somebody has made a pipe non-blocking."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator

import pytest

from agentctl.adapters.descriptors import read_some, until_it_takes_more, write_all, write_some

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
    writer = threading.Thread(target=write_all, args=(writing, MUCH, until_it_takes_more))
    writer.start()
    found = b""
    while len(found) < len(MUCH):
        found += read_some(reading, 1 << 16)
    writer.join()
    assert found == MUCH


def test_the_end_of_a_pipe_is_read_as_nothing() -> None:
    reading, writing = os.pipe()
    os.close(writing)
    assert read_some(reading, 10) == b""
    os.close(reading)


def test_without_patience_a_full_pipe_is_an_error(pipe: tuple[int, int]) -> None:
    with pytest.raises(BlockingIOError):
        write_all(pipe[1], MUCH)


def test_only_a_full_pipe_is_waited_for(pipe: tuple[int, int]) -> None:
    with pytest.raises(OSError, match="space") as caught:
        until_it_takes_more(pipe[1], OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    assert caught.value.errno == errno.ENOSPC


def test_what_was_refused_is_written_once_it_may_be(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    found = []
    write_all(writing, MUCH, lambda *_: found.append(os.read(reading, len(MUCH))))
    found.append(os.read(reading, len(MUCH)))
    assert b"".join(found) == MUCH


def test_what_a_pipe_does_not_take_now_is_kept_for_later(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    unwritten, found = bytearray(MUCH), []
    while not write_some(writing, unwritten):
        found.append(os.read(reading, len(MUCH)))
    found.append(os.read(reading, len(MUCH)))
    assert b"".join(found) == MUCH
    assert not unwritten
