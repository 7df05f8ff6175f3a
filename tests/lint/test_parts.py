"""What is taken off a module whose name is only known at run time is taken by `agentctl.parts`.

An upgrade empties a file before it writes it: `import_module(name).DRIVER` was told as a bug of agentctl then.
"""

from __future__ import annotations

import ast

from tests.support import REPOSITORY

SOURCES = REPOSITORY / "agentctl"
#: The one place; and the names that the package offers, of which `from agentctl import NAME` says what is missing.
ALLOWED = {SOURCES / "parts.py", SOURCES / "__init__.py"}


def _loads(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module")


def _takes(node: ast.AST) -> bool:
    """Return whether something is taken off a module at once, or off the name that the module is given."""
    if isinstance(node, ast.Attribute):
        return _loads(node.value)
    if isinstance(node, ast.Assign):
        return _loads(node.value)
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr" and _loads(node.args[0])


def test_parts_are_taken_by_their_one_place() -> None:
    found = [
        f"{file.relative_to(REPOSITORY)}:{node.lineno}"
        for file in sorted(SOURCES.rglob("*.py"))
        if file not in ALLOWED and "import_module" in (text := file.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute | ast.Assign | ast.Call) and _takes(node)
    ]
    assert found == []
