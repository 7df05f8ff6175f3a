"""At stake: no dependency with a known advisory is allowed again by a lowered bound or an outdated table."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest

from tests.support import REPOSITORY

TABLE = REPOSITORY / "docs" / "decisions" / "0020-lower-bounds.md"
ROWS = re.findall(r"^\| ([\w, -]+) \| ([\d., ]+) \|", TABLE.read_text(encoding="utf-8"), re.MULTILINE)
PAIRS = [pair for names, bounds in ROWS for pair in zip(names.split(", "), bounds.split(", "), strict=True)]


def bounds() -> dict[str, str]:
    project: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    told = [*project["dependencies"], *project["optional-dependencies"]["mcp"]]
    return dict(re.findall(r"^([\w-]+)>=([\d.]+)", "\n".join(told), re.MULTILINE))


def test_the_table_is_read() -> None:
    assert ("filelock", "3.20.3") in PAIRS


@pytest.mark.parametrize(("package", "bound"), PAIRS)
def test_a_bound_is_the_one_that_was_decided(package: str, bound: str) -> None:
    assert bounds()[package.lower()] == bound
