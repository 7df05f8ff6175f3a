"""The lines that a person has entered, kept among their own files: as a shell does, for all their roots."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence

from agentctl.adapters.files import json_in, make_folders, storage_errors, to_json, write_whole
from agentctl.adapters.locks import locked
from agentctl.adapters.opening import read_bytes
from agentctl.adapters.paths import FilePath
from agentctl.adapters.personal import state_folder
from agentctl.errors import Damaged, StorageError

#: The lines that are kept, and the characters of all together; the oldest are forgotten.
_MOST_LINES, _MOST_CHARACTERS = 500, 200_000
#: Several times what that takes in JSON: a larger file is not ours, and counts as empty.
_MOST_BYTES = 4 << 20


#: How long a line waits for the lock. Another screen holds it for a moment; what stopped meanwhile holds it for ever.
_LOCK_LIMIT_S = 1.0


class LineHistory:
    """The lines entered before, and a place in them: `older` and `newer` move it.

    Used by one thread, but for `keep`.
    """

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self.path: FilePath = state_folder(environ) / "lines.json"
        self._lines: Sequence[str] = ()
        with contextlib.suppress(StorageError):  # What is kept there stays.
            self._lines = _lines_in(self.path)
        self._at = len(self._lines)
        self._draft = ""

    def older(self, shown: str) -> str | None:
        """Return the line before the current place; None at the oldest.

        Args:
            shown: What is in the field: at the newest place it is kept as the draft to which `newer` returns.
        """
        if self._at == len(self._lines):
            self._draft = shown
        if self._at == 0:
            return None
        self._at -= 1
        return self._lines[self._at]

    def newer(self) -> str | None:
        """Return the line after the current place, at last the draft; None where there is nothing newer."""
        if self._at == len(self._lines):
            return None
        self._at += 1
        return self._draft if self._at == len(self._lines) else self._lines[self._at]

    def add(self, line: str) -> None:
        """Remember a line, and keep it on disk.

        Raises:
            StorageError, LockTimeout: It could not be kept on disk; it is in memory.
        """
        self.remember(line)
        self.keep(line)

    def remember(self, line: str) -> None:
        """Take a line as the newest, and go behind it, unless it is one that is not kept."""
        self._draft = ""
        if _is_kept(line):
            self._lines = _bounded([*(known for known in self._lines if known != line), line])
        self._at = len(self._lines)

    def keep(self, line: str) -> None:
        """Keep a line on disk, in any thread: it waits for the lock.

        Raises:
            StorageError, LockTimeout: It could not be kept.
        """
        if not _is_kept(line):
            return
        make_folders(self.path.parent)
        with locked(FilePath(f"{self.path}.lock"), limit_s=_LOCK_LIMIT_S):
            theirs = [known for known in _lines_in(self.path) if known != line]
            write_whole(self.path, to_json({"lines": _bounded([*theirs, line])}), durable=False)


def _is_kept(line: str) -> bool:
    """Return whether a line is kept: not one that begins with a space, as in a shell, or that is too long."""
    return bool(line.strip()) and not line.startswith(" ") and len(line) <= _MOST_CHARACTERS


def _lines_in(path: FilePath) -> Sequence[str]:
    """Return the lines in a file; none where it is missing, damaged, or cannot be ours.

    Raises:
        StorageError: It cannot be read.
    """
    with storage_errors(path, "read"):
        try:
            found = json_in(read_bytes(path, _MOST_BYTES), path).get("lines")
        except (FileNotFoundError, NotADirectoryError, Damaged):
            return []
    lines = found if isinstance(found, list) else []
    return _bounded([line for line in lines if isinstance(line, str) and line.strip()])


def _bounded(lines: Sequence[str]) -> Sequence[str]:
    """Return the newest lines that may be kept."""
    left, first = _MOST_CHARACTERS, len(lines)
    while first and len(lines) - first < _MOST_LINES and left >= len(lines[first - 1]):
        first -= 1
        left -= len(lines[first])
    return lines[first:]
