"""At stake: questions about a path get the answers of `pathlib`, whatever a program or a model uses as a name."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentctl.adapters.paths import FilePath


@pytest.mark.parametrize(
    "name", ["there", "dangling", "not there", "a\0b", "\ud800", "x" * 300, "there/below"], ids=ascii
)
def test_it_exists_where_pathlib_says_so(tmp_path: Path, name: str) -> None:
    (tmp_path / "there").touch()
    (tmp_path / "dangling").symlink_to("nowhere")
    try:
        is_there = (tmp_path / name).exists()
    except (OSError, ValueError):
        is_there = False
    assert (FilePath(str(tmp_path)) / name).exists() == is_there


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 8192, 8193, 200_000])
def test_a_file_of_any_size_is_read_whole(tmp_path: Path, size: int) -> None:
    data = bytes(number % 251 for number in range(size))
    (tmp_path / "file").write_bytes(data)
    assert (FilePath(str(tmp_path)) / "file").read_bytes() == data
