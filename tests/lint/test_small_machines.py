"""What is easily built again, a little differently each time, has one home.

A loop around `os.write` that writes a part and then the rest, a splitter that keeps the begun line of a stream, and a
text that is cut and says so, are each written once, with tests of their own.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest

from tests.support import REPOSITORY

PACKAGE = REPOSITORY / "agentctl"


def write_loops(source: str) -> int:
    """Return how many loops of some code use what `os.write` returns: each goes on with the rest."""
    loops = [one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.While | ast.For)]
    return sum(any(ast.unparse(call.func) == "os.write" for call in used_calls(loop)) for loop in loops)


def used_calls(loop: ast.AST) -> list[ast.Call]:
    """Return the calls in a loop whose value is used."""
    dropped = {one.value for one in ast.walk(loop) if isinstance(one, ast.Expr)}
    return [one for one in ast.walk(loop) if isinstance(one, ast.Call) and one not in dropped]


def splitters(source: str) -> int:
    r"""Return how often some code takes a chunk apart: `*lines, rest = chunk.split(b"\n")`."""
    assigned = [one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.Assign)]
    return sum(
        isinstance(one.targets[0], ast.Tuple)
        and any(isinstance(name, ast.Starred) for name in one.targets[0].elts)
        and "split(b'\\n')" in ast.unparse(one.value)
        for one in assigned
    )


def cuts(source: str) -> int:
    """Return how often some code has the whole of a text where it is short, else a part of it and something more."""
    chosen = [one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.IfExp)]
    return sum(
        isinstance(one.test, ast.Compare)
        and ast.unparse(one.test.left) == f"len({ast.unparse(one.body)})"
        and isinstance(one.orelse, ast.BinOp | ast.JoinedStr)
        and f"{ast.unparse(one.body)}[" in ast.unparse(one.orelse)
        for one in chosen
    )


def homes(count: Callable[[str], int], mark: str) -> set[str]:
    """Return the files of the package in which something is found; no file without the mark has it."""
    sources = {file: file.read_text(encoding="utf-8") for file in PACKAGE.rglob("*.py")}
    return {str(file.relative_to(PACKAGE)) for file, source in sources.items() if mark in source and count(source)}


def test_all_bytes_are_written_by_one_loop() -> None:
    assert homes(write_loops, "os.write") == {"adapters/files.py"}, (
        "use `write_all`, or `write_some` for what does not block"
    )


def test_a_stream_is_split_into_lines_in_one_place() -> None:
    # The second knows where in its file each line lies.
    assert homes(splitters, "split(") == {"adapters/lines.py", "operations/show/text_pages.py"}, "use `LineBuffer`"


def test_a_text_is_cut_in_one_place() -> None:
    # The others keep both ends.
    assert homes(cuts, " if len(") == {
        "domain/text/plaintext.py",
        "worker_programs/plain_model/compaction.py",
        "interfaces/mcp/repaired_lines.py",
    }, "use `beginning` or `shortened`"


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("while data:\n    data = data[os.write(fd, data):]", 1),
        ("while data:\n    try:\n        del data[:os.write(fd, data)]\n    except OSError:\n        pass", 1),
        ("while True:\n    os.write(wakes, b'!')", 0),
        ("done = os.write(fd, data)", 0),
    ],
)
def test_what_counts_as_such_a_loop(source: str, count: int) -> None:
    assert write_loops(source) == count


def test_what_counts_as_a_splitter() -> None:
    assert splitters("*lines, rest = (self._rest + data).split(b'\\n')") == 1
    assert splitters("lines = data.split(b'\\n')") == 0


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("text if len(text) <= most else text[: most - 3] + '...'", 1),
        ("text if len(text) <= most else f'{text[:most]}...'", 1),
        ("text if len(text) <= most else beginning(text, most)", 0),
        ("text if len(text) <= most else text[:most]", 0),
    ],
)
def test_what_counts_as_a_cut(source: str, count: int) -> None:
    assert cuts(source) == count
