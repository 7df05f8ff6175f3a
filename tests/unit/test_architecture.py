"""Checks the domain for I/O and clocks, and functions for their length. Layers and wings: pyproject.toml."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import agentctl

PACKAGE = Path(agentctl.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
LONGEST_BODY = 40
#: Modules whose functions have effects, or other results tomorrow.
IMPURE = {
    "os", "io", "sys", "subprocess", "signal", "socket", "time", "random", "secrets", "uuid", "pathlib",
    "shutil", "tempfile", "threading", "asyncio", "fcntl", "select", "ctypes", "psutil", "filelock", "yaml",
    "typer", "rich",
}  # fmt: skip


#: Methods of `datetime` that read a clock; the others only calculate.
CLOCKS = {"now", "today", "utcnow"}


def named(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())


def for_types_alone(tree: ast.Module) -> set[ast.AST]:
    """Return what is below `if TYPE_CHECKING:`, which never runs."""
    blocks = [one for one in ast.walk(tree) if isinstance(one, ast.If) and ast.unparse(one.test) == "TYPE_CHECKING"]
    return {node for block in blocks for statement in block.body for node in ast.walk(statement)}


def imported_by(path: Path, *, types: bool = True) -> set[str]:
    """Return the full names of the modules that a file imports, also inside functions, and for its types."""
    found: set[str] = set()
    tree = tree_of(path)
    left_out = set() if types else for_types_alone(tree)
    for node in ast.walk(tree):
        if node in left_out:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{named(path)}: a relative import"
            found |= {str(node.module)} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def body_length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the number of lines of a function's body without its docstring."""
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    return 0 if not body else int(body[-1].end_lineno or 0) - body[0].lineno + 1


def calls_in(path: Path) -> set[str]:
    """Return the names of the plain functions that a file calls."""
    calls = (node.func for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call))
    return {call.id for call in calls if isinstance(call, ast.Name)}


def clocks_read_by(path: Path) -> set[str]:
    """Return the names of the methods by which a file reads a clock."""
    calls = (node.func for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call))
    return {call.attr for call in calls if isinstance(call, ast.Attribute)} & CLOCKS


def test_a_module_says_what_it_owns() -> None:
    assert [named(path) for path in MODULES if not ast.get_docstring(tree_of(path))] == []


def test_a_function_fits_one_screen() -> None:
    found = {
        f"{named(path)}:{node.lineno} {node.name}": body_length(node)
        for path in MODULES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert len(found) > 500
    assert {name: length for name, length in found.items() if length > LONGEST_BODY} == {}


def test_the_domain_is_pure() -> None:
    domain = [path for path in MODULES if named(path).startswith("domain/")]
    assert len(domain) > 6
    for path in domain:
        assert sorted({name.partition(".")[0] for name in imported_by(path)} & IMPURE) == [], named(path)
        roots = {name.partition(".")[0] for name in imported_by(path, types=False)}
        assert sorted(roots - sys.stdlib_module_names - {"agentctl"}) == [], named(path)
        assert sorted(calls_in(path) & {"open", "print", "input", "exec", "eval"}) == [], named(path)
        assert clocks_read_by(path) == set(), named(path)


def test_only_the_command_line_prints_and_only_it_and_the_screen_draw() -> None:
    for path in MODULES:
        drawn = {"cli": set(), "screen": {"typer"}}.get(named(path).partition("/")[0], {"typer", "rich"})
        assert not {name.partition(".")[0] for name in imported_by(path)} & drawn, named(path)
        assert path.parent.name == "cli" or "print" not in calls_in(path), named(path)


def test_the_rules_can_be_broken(tmp_path: Path) -> None:
    """The tests above would also pass with rules that accept everything."""
    file = tmp_path / "domain" / "bad.py"
    file.parent.mkdir()
    file.write_text("import os.path\ndef f():\n    '''Doc.'''\n" + "    date.today()\n" * 41, encoding="utf-8")
    (function,) = [node for node in ast.walk(tree_of(file)) if isinstance(node, ast.FunctionDef)]
    assert body_length(function) == 41
    assert imported_by(file) == {"os.path"}
    assert clocks_read_by(file) == {"today"}
