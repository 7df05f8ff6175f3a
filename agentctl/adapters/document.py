"""A parsed file that a person wrote, and the line of each of its keys: for errors that name file and line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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

    def check_keys(self, keys: tuple[str, ...], value: Mapping[str, Any], known: Iterable[str]) -> None:
        """Raise `UsageError` where the mapping under these keys has one that is not known."""
        known = tuple(known)
        unknown = min(value.keys() - set(known), default=None)
        if unknown is not None:
            raise self.error((*keys, unknown), f"unknown key {unknown!r}; known: {', '.join(known)}")

    def number(self, keys: tuple[str, ...], value: object, low: float, high: float, *, whole: bool = False) -> float:
        """Return the value under these keys if it is a number from `low` to `high`, else raise `UsageError`."""
        kinds = (int,) if whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
            kind = "a whole number" if whole else "a number"
            raise self.error(keys, f"{keys[-1]} must be {kind} from {low:g} to {high:g}")
        return value if whole else float(value)
