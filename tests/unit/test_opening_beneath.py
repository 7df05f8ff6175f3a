"""At stake: what is opened below a folder lies there, whatever somebody puts on the way."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentctl.adapters.opening import OddFile, open_beneath


def content(base: Path, below: str) -> bytes:
    with os.fdopen(open_beneath(str(base), below), "rb") as file:
        return file.read()


def test_a_file_below_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/c").write_bytes(b"here")
    (tmp_path / "named").symlink_to(tmp_path / "a")
    assert content(tmp_path, "a/b/c") == b"here"
    assert content(tmp_path / "named", "b/c") == b"here", "how the folder itself is reached does not matter"
    with pytest.raises(FileNotFoundError):
        content(tmp_path, "a/none")


def test_no_link_is_followed_and_nothing_else_is_opened(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"not for you")
    base = tmp_path / "base"
    (base / "folder").mkdir(parents=True)
    (base / "file").write_bytes(b"x")
    (base / "link").symlink_to(secret)
    (base / "up").symlink_to(tmp_path)
    os.mkfifo(base / "fifo")
    for below in ("link", "up/secret", "../secret", "folder/../../secret", "folder", "fifo", "", "folder//file",
                  "./file", "file/x", "a\0b"):  # fmt: skip
        with pytest.raises(OddFile):
            content(base, below)
