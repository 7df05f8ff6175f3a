"""Runs the examples in the docstrings."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import agentctl

PACKAGE = Path(agentctl.__file__).parent
#: The modules with examples; others need not be loaded, and some load a library of seconds.
MODULES = [
    ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts)
    for file in sorted(PACKAGE.rglob("*.py"))
    if ">>> " in file.read_text(encoding="utf-8")
]


def test_examples_are_true() -> None:
    results = {name: doctest.testmod(importlib.import_module(name)) for name in MODULES}
    assert [name for name, result in results.items() if result.failed or not result.attempted] == []


def test_the_pure_modules_have_examples() -> None:
    assert sum(name.startswith("agentctl.domain.") for name in MODULES) >= 8
