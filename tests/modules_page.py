"""Makes `docs/modules.md`: `python -m tests.modules_page > docs/modules.md`. A test compares the page with the code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import agentctl

PACKAGE = Path(agentctl.__file__).parent
_HEAD = """# What is decided where

Each module and the first sentence of it, folder by folder, from the command line down; `python -m tests.modules_page >
docs/modules.md` makes this page. Search it for the word that you have in mind.
"""
#: The rooms, from the user's side down to the disk.
_LAYERS = (
    "", "interfaces", "worker_programs", "tools", "operations", "drivers", "shim", "runners", "supervision", "adapters",
    "domain",
)  # fmt: skip


def missing() -> set[str]:
    """Return the folders with modules that the page would lack."""
    return {path.parent.name for path in PACKAGE.glob("*/__init__.py")} - set(_LAYERS)


def page() -> str:
    """Return the whole page."""
    return "\n".join(
        [_HEAD, *(section for layer in _LAYERS for section in _sections(PACKAGE / layer, deep=bool(layer)))]
    )


def _sections(folder: Path, *, deep: bool) -> Iterator[str]:
    modules = sorted(path for path in folder.glob("*.py") if path.name != "__init__.py")
    name = folder.relative_to(PACKAGE.parent)
    rows = [f"| `{path.stem}` | {_sentence(path)} |" for path in modules]
    table = ["| module | says |", "|---|---|", *rows] if rows else []
    yield "\n".join([f"## {name}/", "", _sentence(folder / "__init__.py"), "", *table, *([""] if rows else [])])
    if deep:
        for below in sorted(path for path in folder.iterdir() if (path / "__init__.py").exists()):
            yield from _sections(below, deep=True)


def _sentence(path: Path) -> str:
    """Return the first paragraph of a module's docstring, on one line."""
    text = ast.get_docstring(ast.parse(path.read_bytes())) or ""
    return " ".join(text.split("\n\n", 1)[0].split()).replace("|", "\\|")


if __name__ == "__main__":
    print(page(), end="")
