"""What README shows: the lines that are typed, and what they print."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.support import REPOSITORY

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
_NUMBERS = re.compile(r"\d+")


class Shown(NamedTuple):
    """A line that is typed, and what is printed then."""

    line: str
    printed: list[str]


def shown_in(heading: str) -> Iterator[Shown]:
    """Yield what is typed below a heading."""
    part = README.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    shown: Shown | None = None
    for line in part.splitlines():
        if line.startswith("    $ "):
            if shown is not None:
                yield shown
            shown = Shown(line.removeprefix("    $ "), [])
        elif line.startswith("    ") and shown is not None:
            shown.printed.append(line.strip())
    assert shown is not None
    yield shown


def alike(text: str, folder: Path, shown: str) -> str:
    """Return a line without what differs each time: where it was typed, which README calls `shown`, and numbers."""
    return _NUMBERS.sub("#", text.replace(str(folder), shown)).strip()
