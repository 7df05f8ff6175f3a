"""What is easily built again, a little differently each time, has one home.

A loop around `os.write` that writes a part and then the rest, and a splitter that keeps the begun line of a stream,
are each written once, with tests of their own.
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


def homes(count: Callable[[str], int]) -> set[str]:
    """Return the files of the package in which something is found."""
    files = sorted(PACKAGE.rglob("*.py"))
    return {str(file.relative_to(PACKAGE)) for file in files if count(file.read_text(encoding="utf-8"))}


def test_all_bytes_are_written_by_one_loop() -> None:
    assert homes(write_loops) == {"adapters/descriptors.py"}, "use `write_all`, or `write_some` for what does not block"


def test_a_stream_is_split_into_lines_in_one_place() -> None:
    # The second knows where in its file each line lies.
    assert homes(splitters) == {"adapters/lines.py", "operations/show/text_pages.py"}, "use `LineBuffer`"


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
