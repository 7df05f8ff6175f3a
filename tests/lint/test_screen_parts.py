"""A part of a screen that is changed or asked later is made with what it belongs to, and kept in an attribute.

Whoever looks it up with `query_one` ends the whole screen where a key comes before it was put together: on a slow
machine, once in a thousand times.
"""

from __future__ import annotations

from tests.support import REPOSITORY

PACKAGE = REPOSITORY / "agentctl"


def test_no_part_of_a_screen_is_looked_up() -> None:
    found = [
        f"{file.relative_to(PACKAGE)}: {line.strip()}"
        for file in sorted((PACKAGE / "interfaces" / "screen").rglob("*.py"))
        for line in file.read_text(encoding="utf-8").splitlines()
        if ".query_one(" in line
    ]
    assert found == []
