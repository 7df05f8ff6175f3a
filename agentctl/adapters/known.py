"""A cache of the parsed content of small files: loading YAML takes longer than everything else that a command does.

It is kept beside the person's trust, since anybody who can write it can change what an agent is. An entry counts only
for exactly the bytes that were read, and only for this version of agentctl.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import agentctl
from agentctl.adapters.files import make_folders, read_known, to_json, write_whole
from agentctl.adapters.personal import config_folder, is_ones_own
from agentctl.errors import StorageError

_MOST_FILES, _MOST_BYTES = 300, 64 * 1024
_HERE = Path(__file__).parent
#: The code that interprets the files: a change of one of these is another version, too.
_CODE = (
    _HERE / "definitions.py", _HERE / "taskyaml" / "reader.py", _HERE / "taskyaml" / "notifying.py",
    _HERE / "taskyaml" / "hosts.py", _HERE.parent / "domain" / "hosts.py",
    _HERE.parent / "domain" / "agent" / "agentspec.py",
)  # fmt: skip


class KnownFiles:
    """The parsed content of each file, by its form and path."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._by = f"{agentctl.__version__} {max(os.stat(code).st_mtime_ns for code in _CODE)}"
        #: Where the cache cannot be read now, what is in it stays.
        self._is_readable = True
        self._rows: dict[str, dict[str, Any]] = self._read()
        self._has_more = False

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            found = read_known(self._file) if _is_ours(self._file) else {}
        except (StorageError, OSError):
            self._is_readable = False
            return {}
        rows = found.get("files") if found.get("by") == self._by else None
        return rows if isinstance(rows, dict) else {}

    def said(self, form: str, path: Path, data: bytes) -> dict[str, Any] | None:
        """Return the parsed content of a file whose bytes are `data`; None where it is not in the cache."""
        row = self._rows.get(f"{form} {path}")
        with contextlib.suppress(KeyError, TypeError, UnicodeDecodeError):
            if row and row["text"] == data.decode() and isinstance(row["says"], dict):
                return row["says"]
        return None

    def keep(self, form: str, path: Path, data: bytes, says: Mapping[str, Any]) -> None:
        """Put the parsed content of a file into the cache; `save` writes the cache to disk."""
        if len(data) <= _MOST_BYTES:
            with contextlib.suppress(UnicodeDecodeError):
                self._rows.pop(f"{form} {path}", None)  # The latest entries come last.
                self._rows[f"{form} {path}"] = {"text": data.decode(), "says": dict(says)}
                self._has_more = True

    def save(self) -> None:
        """Write new entries to disk; where that fails, the next command parses the files again."""
        if self._has_more and self._is_readable:
            self._has_more = False
            rows = dict(list(self._rows.items())[-_MOST_FILES:])
            with contextlib.suppress(OSError, StorageError, TypeError):  # TypeError: a value that JSON lacks.
                make_folders(os.path.realpath(self._file.parent))
                write_whole(self._file, to_json({"by": self._by, "files": rows}), durable=False)


@lru_cache(maxsize=4)
def _known(file: Path) -> KnownFiles:
    return KnownFiles(file)


def known_files(environ: Mapping[str, str]) -> KnownFiles:
    """Return the cache of this person; each process reads it once."""
    return _known(Path(config_folder(environ)) / "known.json")


def _is_ours(file: Path) -> bool:
    try:
        found = os.stat(file)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return is_ones_own(found)
