"""At stake: the end of a file, and whether it is another one, are what they are, and no odd file holds a look up."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.adapters.eventlog import blocks_of
from agentctl.adapters.opening import OddFile
from agentctl.adapters.tails import file_version, read_tail


@given(data=st.binary(max_size=20), most=st.integers(0, 25))
def test_a_tail_is_the_end_of_the_whole(tmp_path_factory: pytest.TempPathFactory, data: bytes, most: int) -> None:
    file = tmp_path_factory.getbasetemp() / "data"
    file.write_bytes(data)
    assert read_tail(file, most) == (data[max(0, len(data) - most) :], len(data))
    with file.open("rb") as opened:
        assert read_tail(opened.fileno(), most) == read_tail(file, most)
        assert opened.read() == data, "it stays open, and where it was"


def test_the_tail_of_a_fifo_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OddFile):
        read_tail(tmp_path / "fifo", 10)


def test_a_file_in_the_place_of_another_has_another_version(tmp_path: Path) -> None:
    file, other = tmp_path / "a", tmp_path / "b"
    file.write_bytes(b"1")
    other.write_bytes(b"2")
    os.utime(other, ns=(0, file.stat().st_mtime_ns))
    first = file_version(file)
    assert file_version(file) == first
    os.replace(other, file)
    second = file_version(file)
    file.write_bytes(b"22")
    assert len({first, second, file_version(file)}) == 3
    with pytest.raises(FileNotFoundError):
        file_version(other)


def test_a_log_is_read_on_from_an_offset(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert list(blocks_of(log, 0)) == []
    log.write_bytes(b"one\ntwo\nthr")
    assert list(blocks_of(log, 0)) == [(8, b"one\ntwo\n")]
    assert list(blocks_of(log, 4)) == [(8, b"two\n")]
    assert list(blocks_of(log, 8)) == []
