"""A cache of what small files of a person say: to load YAML takes longer than all else that a command does.

It is kept beside that person's trust, since who can write it can say what an agent is. It counts for the very bytes
that were read, and for this version of agentctl alone.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import agentctl
from agentctl.adapters.files import make_folder, read_quietly, to_json, write_whole
from agentctl.adapters.personal import config_folder, is_ones_own
from agentctl.errors import StorageError

_MOST_FILES, _MOST_BYTES = 300, 64 * 1024
_HERE = Path(__file__).parent
#: What says how files are understood: a change of one of them is another version, too.
_CODE = (_HERE / "definitions.py", _HERE / "taskyaml" / "reader.py", _HERE.parent / "domain" / "agentspec.py")


class KnownFiles:
    """What each file was found to say, by its path and what it was read as."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._by = f"{agentctl.__version__} {max(os.stat(code).st_mtime_ns for code in _CODE)}"
        found = read_quietly(file) if _is_ours(file) else {}
        rows = found.get("files") if found.get("by") == self._by else None
        self._rows: dict[str, dict[str, Any]] = rows if isinstance(rows, dict) else {}
        self._has_more = False

    def said(self, form: str, path: Path, data: bytes) -> dict[str, Any] | None:
        """Return what `data`, the content of a file, was found to say; None where that is not known."""
        row = self._rows.get(f"{form} {path}")
        with contextlib.suppress(KeyError, TypeError, UnicodeDecodeError):
            if row and row["text"] == data.decode() and isinstance(row["says"], dict):
                return row["says"]
        return None

    def keep(self, form: str, path: Path, data: bytes, says: Mapping[str, Any]) -> None:
        """Keep what a file says; `save` writes it down."""
        if len(data) <= _MOST_BYTES:
            with contextlib.suppress(UnicodeDecodeError):
                self._rows.pop(f"{form} {path}", None)  # Those that were kept last stand last.
                self._rows[f"{form} {path}"] = {"text": data.decode(), "says": dict(says)}
                self._has_more = True

    def save(self) -> None:
        """Write down what is new; where that cannot be done, the next command finds it out again."""
        if self._has_more:
            self._has_more = False
            rows = dict(list(self._rows.items())[-_MOST_FILES:])
            with contextlib.suppress(OSError, StorageError, TypeError):  # A value that JSON has not.
                make_folder(os.path.realpath(self._file.parent))
                write_whole(self._file, to_json({"by": self._by, "files": rows}), durable=False)


@lru_cache(maxsize=4)
def _known(file: Path) -> KnownFiles:
    return KnownFiles(file)


def known_files(environ: Mapping[str, str]) -> KnownFiles:
    """Return what is known of files; read once by each process."""
    return _known(Path(config_folder(environ)) / "known.json")


def _is_ours(file: Path) -> bool:
    try:
        found = os.stat(file)
    except OSError:
        return False
    return is_ones_own(found)
