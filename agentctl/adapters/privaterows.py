"""A private file of a person with a row for each path: what they trust, which roots were accepted.

What others could have written does not count: every row gives something a right.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agentctl.adapters.files import make_folders, read_json, to_json, write_whole
from agentctl.adapters.locks import locked
from agentctl.adapters.personal import is_ones_own
from agentctl.errors import AtTerminal, Damaged, Refused

#: real path -> row
Rows = dict[str, dict[str, str]]


def read_rows(file: Path, key: str, needed: str, again: AtTerminal) -> Rows:
    """Return the rows of a file under its one key; a row without the text `needed` does not count.

    Args:
        again: What to do after a damaged file was removed.

    Raises:
        Refused: Somebody else can write the file.
        Damaged: It cannot be read.
    """
    try:
        info = os.stat(file)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    if not is_ones_own(info):
        raise Refused(f"{file} can be written by somebody else, so nothing in it counts", hint=f"rm {_quoted(file)}")
    try:
        found = (read_json(os.path.realpath(file)) or {}).get(key)
    except Damaged as error:
        raise Damaged(error.message, hint=AtTerminal(f"rm {_quoted(file)}, then {again.text}")) from error
    rows = found.items() if isinstance(found, dict) else ()
    return {path: row for path, row in rows if isinstance(row, dict) and isinstance(row.get(needed), str)}


def _quoted(file: Path) -> str:
    import shlex  # Only for a refusal.

    return shlex.quote(os.fspath(file))


def change_rows(file: Path, key: str, read: Callable[[], Rows], change: Callable[[Rows], Any]) -> None:
    """Replace the file as a whole, under its lock: two changes at once happen one after the other."""
    make_folders(os.path.realpath(file.parent))
    with locked(f"{file.parent}/"):
        before = read()
        rows = dict(before)
        change(rows)
        if rows != before:
            write_whole(file, to_json({key: rows}))
