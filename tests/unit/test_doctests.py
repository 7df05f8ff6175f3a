"""Runs the examples in the docstrings."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import agentctl

MODULES = [
    module.name for module in pkgutil.walk_packages(agentctl.__path__, "agentctl.") if "__main__" not in module.name
]


def test_examples_are_true() -> None:
    failed = [name for name in MODULES if doctest.testmod(importlib.import_module(name)).failed]
    assert failed == []


def test_the_pure_modules_have_examples() -> None:
    domain = [importlib.import_module(name) for name in MODULES if name.startswith("agentctl.domain.")]
    finder = doctest.DocTestFinder()
    assert sum(bool(test.examples) for module in domain for test in finder.find(module)) >= 8
