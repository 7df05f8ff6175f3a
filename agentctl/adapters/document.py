"""A parsed file that a person wrote, and the line of each of its keys: for errors that name file and line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentctl.errors import UsageError


class Document:
    """A parsed mapping, with the line of each of its keys."""

    def __init__(self, path: Path, value: dict[str, Any], lines: Mapping[tuple[str, ...], int]) -> None:
        self.path = path
        self.value = value
        self._lines = lines

    def at(self, *keys: str) -> Any:
        """Return what stands under these keys, each within the one before; None where nothing does."""
        found: Any = self.value
        for key in keys:
            found = found.get(key) if isinstance(found, Mapping) else None
        return found

    def error(self, keys: tuple[str, ...], problem: str) -> UsageError:
        """Return an error that names file, line and key."""
        line = next((self._lines[keys[:n]] for n in range(len(keys), 0, -1) if keys[:n] in self._lines), 1)
        return UsageError(f"{self.path}:{line}: {problem}", hint="fix that line; nothing was changed")
