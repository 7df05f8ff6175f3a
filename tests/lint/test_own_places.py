"""A test that needs a path where nothing is takes one in its own folder: anybody may make any other."""

from __future__ import annotations

import re

from tests.support import REPOSITORY

TESTS = REPOSITORY / "tests"
#: `/nowhere` is left for what is written down and not looked at.
SUPPOSED_TO_BE_MISSING = re.compile(r"[\"'#=]/(?:nonexistent|no/such|does/not|missing)\b")


def test_no_test_relies_on_what_others_have_not_made() -> None:
    found = [
        f"{file.relative_to(TESTS)}: {line.strip()}"
        for file in sorted(TESTS.rglob("*.py"))
        for line in file.read_text(encoding="utf-8").splitlines()
        if SUPPOSED_TO_BE_MISSING.search(line)
    ]
    assert found == []
