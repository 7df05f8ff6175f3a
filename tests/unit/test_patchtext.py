"""At stake: a patch is read as git means it, whatever the content and the names of the files in it look like."""

from __future__ import annotations

import io
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agentctl.domain.text.patchtext import PatchedFile, files_in
from tests.repositories import commit, new_repository


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    file = io.BytesIO(data)
    return iter(lambda: file.readline(size), b"")


#: Content that looks like a patch's own lines.
LINES = st.one_of(
    st.binary(max_size=9).map(lambda data: data.replace(b"\n", b"")),
    st.sampled_from([b"diff --git a/x b/x", b"@@ -1 +1 @@", b"+++ b/x", b"deleted file mode 100644", b"- x", b""]),
)
CHANGES = st.lists(st.tuples(st.sampled_from(b"+- ").map(lambda code: bytes([code])), LINES), min_size=1, max_size=9)


@given(st.lists(CHANGES, max_size=4), st.integers(1, 80))
def test_lines_are_counted_whatever_they_look_like(files: list[list[tuple[bytes, bytes]]], size: int) -> None:
    patch, expected = b"", []
    for number, lines in enumerate(files):
        start, name = len(patch), b"f%d" % number
        old, new = (sum(sign in (b" ", own) for sign, _ in lines) for own in (b"-", b"+"))
        patch += b"diff --git a/%b b/%b\nindex 1..2 100644\n--- a/%b\n+++ b/%b\n" % ((name,) * 4)
        patch += b"@@ -1,%d +1,%d @@\n" % (old, new) + b"".join(sign + text + b"\n" for sign, text in lines)
        added, removed = (sum(sign == own for sign, _ in lines) for own in (b"+", b"-"))
        expected.append(PatchedFile(name, "modified", added, removed, start, len(patch)))
    # A piece has at least the whole head of a file; what is cut is a line of content.
    assert list(files_in(pieces(patch, size + 80))) == expected


@given(st.binary(max_size=300), st.integers(1, 40))
def test_no_data_breaks_it(data: bytes, size: int) -> None:
    found = list(files_in(pieces(b"diff --git a/x b/x\n" + data, size)))
    assert found or size < 12
    assert all(one.start <= one.end for one in found)


def test_names_are_those_that_git_was_given(tmp_path: Path) -> None:
    repository = new_repository(tmp_path / "r")
    names = [b"a b", b'quo"te', b"tab\tand\nline", b"back\\slash", b"\xff\xfe", "é".encode(), b" b/ b", b"x b/x"]
    for name in names:
        path = os.path.join(os.fsencode(repository), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(os.fsdecode(path)).write_bytes(b"1\n2")
    commit(repository, "odd")
    for quotes in ("true", "false"):
        argv = ["git", "-c", f"core.quotePath={quotes}", "show", "--format=", "--binary"]
        patch = subprocess.run(argv, cwd=repository, capture_output=True, check=True).stdout
        found = {one.path: one[1:4] for one in files_in(pieces(patch, 1 << 16))}
        assert found == dict.fromkeys(names, ("added", 2, 0)), quotes
