"""Checks that every test that docs/promises.md and SECURITY.md name exists, and that every promise has tests."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
PROMISES = TESTS.parent / "docs" / "promises.md"
SECURITY = TESTS.parent / "SECURITY.md"


def named(page: Path) -> list[tuple[str, str]]:
    return re.findall(r"`(\S+\.py)::(test_\w+)`", page.read_text(encoding="utf-8"))


@cache
def functions(file: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("page", [PROMISES, SECURITY], ids=["promises", "security"])
def test_every_test_that_is_named_exists(page: Path) -> None:
    missing = [f"{file}::{name}" for file, name in named(page) if name not in functions(TESTS / file)]
    assert named(page)
    assert missing == []


def test_every_page_that_security_speaks_of_exists() -> None:
    links = re.findall(r"\]\(([\w./-]+)", SECURITY.read_text(encoding="utf-8"))
    named_files = re.findall(r"`((?!tests/)[\w/]+/test_\w+\.py)`", SECURITY.read_text(encoding="utf-8"))
    assert [link for link in links if not (SECURITY.parent / link).exists()] == []
    assert [file for file in named_files if not (TESTS / file).exists()] == []


def test_every_point_of_security_names_tests() -> None:
    text = SECURITY.read_text(encoding="utf-8")
    points = re.findall(r"^- \*\*(.+?)\*\*(.*?)(?=^- \*\*|^Not promised|^#|\Z)", text, flags=re.MULTILINE | re.DOTALL)
    assert len(points) > 10
    assert [name for name, behind in points if not re.search(r"test_\w+\.py", behind)] == []


def test_every_promise_has_tests() -> None:
    parts = re.split(r"^## (\d+)\. ", PROMISES.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    counts = {int(number): text.count("::test_") for number, text in zip(parts[::2], parts[1::2], strict=True)}
    assert sorted(counts) == list(range(1, len(counts) + 1))
    assert min(counts.values()) >= 3
