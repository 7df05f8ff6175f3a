"""What a module of agentctl imports, at its start and within its functions, as its source says."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

from tests.support import REPOSITORY


def source_of(module: str) -> Path | None:
    """Return the file of a module of agentctl; None if there is no such module."""
    place = REPOSITORY.joinpath(*module.split("."))
    files = (place / "__init__.py", place.with_name(f"{place.name}.py"))
    return next((file for file in files if file.is_file()), None)


@cache
def imported_by(module: str) -> frozenset[str]:
    """Return the modules of agentctl that a module imports, whenever that is."""
    source = source_of(module)
    assert source is not None, module
    return frozenset(_imports(ast.parse(source.read_text(encoding="utf-8"))))


def _imports(node: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names if alias.name.startswith("agentctl"))
        elif isinstance(child, ast.ImportFrom) and (child.module or "").startswith("agentctl"):
            for alias in child.names:
                name = f"{child.module}.{alias.name}"
                yield name if source_of(name) else str(child.module)
        yield from _imports(child)


def reached_from(modules: Collection[str], without: Collection[str] = ()) -> set[str]:
    """Return all modules that are imported, now or later, once some are; packages count as well."""
    reached: set[str] = set()
    left = list(modules)
    while left:
        module = left.pop()
        if module in reached or module in without or source_of(module) is None:
            continue
        reached.add(module)
        parts = module.split(".")
        left += [".".join(parts[:count]) for count in range(1, len(parts))]
        left += imported_by(module)
    return reached


def loaded_with(modules: Collection[str], flags: Collection[str]) -> set[str]:
    """Return which modules a new interpreter has loaded once it has loaded some."""
    code = f"import sys; sys.path.insert(0, {str(REPOSITORY)!r})\n" + "".join(f"import {one}\n" for one in modules)
    argv = [sys.executable, *flags, "-c", f"{code}print(*sys.modules)"]
    return set(subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split())
