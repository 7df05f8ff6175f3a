"""What README shows: the lines that are typed, and what they print."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.support import REPOSITORY
from tests.terminal import on_a_terminal

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
_NUMBERS = re.compile(r"\d+")
#: What colours a text; what moves the cursor: a live table is drawn before the lines that stay.
_COLOURS, _MOVES = re.compile(r"\x1b\[[0-9;]*m"), re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Shown(NamedTuple):
    """A line that is typed, and what is printed then."""

    line: str
    printed: list[str]


def first_lines() -> list[str]:
    """Return the lines of the first screen: those that are typed after the installation."""
    first_screen = README.partition("\n## ")[0]
    return [line.removeprefix("    ") for line in first_screen.splitlines() if line.startswith("    ")]


def install_line() -> str:
    """Return the line of the first screen that installs agentctl, in a checkout."""
    found = re.search(r"In a checkout, `(.+?)` installs it", README)
    assert found
    return found[1]


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


def typed(line: str) -> tuple[int, str]:
    """Type a line; return its exit code and what it prints, line by line."""
    code, sent = on_a_terminal(["bash", "-c", line], width=300)
    return code, _MOVES.sub("\n", _COLOURS.sub("", sent.decode().replace("\r", "")))


def lacking(shown: Shown, out: str, folder: Path, place: str) -> list[str]:
    """Return what README shows and was not printed.

    Args:
        folder: Where it was typed, which README calls `place`.
    """
    printed = {alike(line, folder, place) for line in out.splitlines()}
    return [line for line in (alike(line, folder, place) for line in shown.printed) if line not in printed]


def alike(text: str, folder: Path, shown: str) -> str:
    """Return a line without what differs each time: where it was typed, which README calls `shown`, and numbers."""
    return _NUMBERS.sub("#", text.replace(str(folder), shown)).strip()
