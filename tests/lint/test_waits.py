"""What a test waits for may not be there yet: a file is read by `text_in`, `wait_for_text` or `wait_for_json`.

A read that fails where the file is missing ends the test whose wait was to see it appear, and a file that exists may
still be empty: both happen on a busy machine, once in a thousand runs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import REPOSITORY

READS = {"read_text", "read_bytes"}


def test_no_wait_depends_on_a_file_that_may_not_be_there_yet() -> None:
    tests = sorted((REPOSITORY / "tests").rglob("*.py"))
    assert [f"{file}:{line}" for file in tests for line in sorted(hasty_reads(file.read_text(encoding="utf-8")))] == []


def hasty_reads(source: str) -> set[int]:
    """Return the lines that read a file while it is waited for, or after nothing but that it exists was waited for."""
    tree = ast.parse(source)
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    found = set()
    for condition in conditions(tree):
        named = {node.id for node in ast.walk(condition) if isinstance(node, ast.Name)} & functions.keys()
        for looked in (condition, *(functions[name] for name in named)):
            found |= {read.lineno for read in unguarded_reads(looked)}
    for function in functions.values():
        since = {
            ast.unparse(node.value): node.lineno
            for condition in conditions(function)
            for node in ast.walk(condition)
            if isinstance(node, ast.Attribute) and node.attr == "exists"
        }
        for read in unguarded_reads(function):
            if read.lineno > since.get(ast.unparse(read.value), read.lineno):
                found.add(read.lineno)
    return found


def conditions(tree: ast.AST) -> Iterator[ast.expr]:
    """Return what is waited for in some code."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="wait_until"), args=[condition, *_]):
                yield condition


def unguarded_reads(tree: ast.AST) -> Iterator[ast.Attribute]:
    """Return the reads in some code whose failure ends it; what /proc tells of a process that lives is always there."""
    if isinstance(tree, ast.Try) or (isinstance(tree, ast.With) and "suppress" in ast.unparse(tree.items[0])):
        return
    if isinstance(tree, ast.Attribute) and tree.attr in READS and "/proc/" not in ast.unparse(tree.value):
        yield tree
    for node in ast.iter_child_nodes(tree):
        yield from unguarded_reads(node)


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("wait_until(lambda: 'x' in file.read_text())", {1}),
        ("wait_until(file.read_bytes)", {1}),
        ("def looks():\n    return file.read_text()\nwait_until(looks)", {2}),
        ("def looks():\n    return file.read_text()\nwait_until(lambda: looks() == 'x')", {2}),
        ("def test():\n    wait_until(file.exists)\n    file.read_text()", {3}),
        ("def test():\n    wait_until(lambda: file.exists())\n    other.read_text()", set()),
        ("def looks():\n    with suppress(OSError):\n        file.read_text()\nwait_until(looks)", set()),
        ("wait_until(lambda: text_in(file))", set()),
    ],
)
def test_what_a_hasty_read_is(source: str, lines: set[int]) -> None:
    assert hasty_reads(source) == lines


#: Where a process is looked into that may have ended meanwhile.
ASK_PROCESSES = {"processes.py", "leaks.py"}
LOOKS_INTO_A_PROCESS = re.compile(r"\.(cmdline|net_connections|open_files)\(")


def test_no_look_at_a_process_fails_because_it_has_ended() -> None:
    """Whoever looks through all processes meets some that end meanwhile."""
    found = [
        f"{file}:{number}"
        for file in sorted((REPOSITORY / "tests").rglob("*.py"))
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if LOOKS_INTO_A_PROCESS.search(line) and file.name not in ASK_PROCESSES | {Path(__file__).name}
    ]
    assert found == [], "tests/processes.py has words_of, connections_of, files_of"


def test_no_wait_fails_because_what_it_lists_has_ended() -> None:
    """`psutil.Process` of a pid that was listed a moment ago fails where that process has ended meanwhile."""
    tests = sorted((REPOSITORY / "tests").rglob("*.py"))
    found = [f"{file}:{line}" for file in tests for line in sorted(hasty_lists(file.read_text(encoding="utf-8")))]
    assert found == [], "let what lists them give what is asked about them"


def hasty_lists(source: str) -> set[int]:
    """Return the lines that make a psutil.Process of each of many, in what is waited for."""
    return {
        call.lineno
        for condition in conditions(ast.parse(source))
        for each in ast.walk(condition)
        if isinstance(each, ast.ListComp | ast.SetComp | ast.GeneratorExp)
        for call in ast.walk(each.elt)
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "psutil.Process"
    }


def test_what_a_hasty_list_is() -> None:
    assert hasty_lists("wait_until(lambda: [psutil.Process(one.pid).name() for one in listed()])") == {1}
    assert hasty_lists("wait_until(lambda: [name_of(one) for one in psutil.Process(pid).children()])") == set()


#: These look where nobody writes, or bear that a file is gone. This may only shrink.
STAND_STILL = {
    "guard.py", "snapshots.py", "test_doctests.py", "test_eventlog.py", "test_extras.py", "test_gate.py",
    "test_install.py", "test_llm_tools.py", "test_placed.py", "test_spawn.py", "test_why.py",
    "test_worktree_diff.py", "test_world_errors.py", "worlds.py",
}  # fmt: skip
#: Looks at each file of a folder, which others may write into meanwhile.
ALL_FILES = re.compile(r'\.rglob\("\*(\.tmp)?"\)|\bos\.walk\(')


def test_all_files_of_a_folder_are_looked_at_in_one_place() -> None:
    """A file is replaced by one that was written beside it: whoever lists both meets one that is gone."""
    found = [
        f"{file}:{number}"
        for file in sorted((REPOSITORY / "tests").rglob("*.py"))
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if ALL_FILES.search(line) and file.name not in STAND_STILL | {Path(__file__).name}
    ]
    assert found == [], "tests/snapshots.py has snapshot, files_with"


#: Removes what shims, hosts or commands may write into meanwhile.
REMOVES_IN_ONE_GO = re.compile(r'rmtree\(.*(\btask|\.path\b|\broot\b|"tasks")')


def test_a_folder_that_others_write_into_is_removed_until_it_is_gone() -> None:
    """Whoever removes it in one go lists it first, and fails where something has come into it since."""
    found = [
        f"{file}:{number}"
        for file in sorted((REPOSITORY / "tests").rglob("test_*.py"))
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if REMOVES_IN_ONE_GO.search(line) and file.name != Path(__file__).name and "record(task" not in line
    ]
    assert found == [], "tests/support.py has remove"
