"""docs/promises.md is worth what the tests are worth that it names: each must exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parent.parent
PROMISES = TESTS.parent / "docs" / "promises.md"


def named() -> list[tuple[str, str]]:
    return re.findall(r"^- `(\S+\.py)::(test_\w+)`$", PROMISES.read_text(encoding="utf-8"), re.MULTILINE)


def functions(file: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.FunctionDef)}


def test_every_test_that_is_named_exists() -> None:
    missing = [f"{file}::{name}" for file, name in named() if name not in functions(TESTS / file)]
    assert named()
    assert missing == []


def test_every_promise_has_tests() -> None:
    parts = re.split(r"^## (\d+)\. ", PROMISES.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    counts = {int(number): text.count("::test_") for number, text in zip(parts[::2], parts[1::2], strict=True)}
    assert sorted(counts) == list(range(1, 13))
    assert min(counts.values()) >= 3
