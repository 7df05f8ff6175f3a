"""Takes down all that is in a folder, to show that something has left it as it was."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from tests.support import wait_until


def snapshot(folder: Path) -> dict[str, str]:
    """Return the path, the mode and the content of everything in a folder, but for the clocks that shims write.

    What is replaced is first written beside its old form, and that name is gone a moment after the new form is there:
    whoever has seen the last row of a roster may still meet it. So this waits until nothing is being replaced.
    """
    return (
        wait_until(
            lambda: _as_it_stands(folder),
            accept=lambda found: found is not None,
            what=f"nothing in {folder} to be in the middle of being replaced",
        )
        or {}
    )


def _as_it_stands(folder: Path) -> dict[str, str] | None:
    try:
        paths = [path for path in sorted(folder.rglob("*")) if not path.name.startswith("worked.json")]
        if any(path.suffix == ".tmp" for path in paths):
            return None
        return {str(path.relative_to(folder)): _looks(path) for path in paths}
    except FileNotFoundError:
        return None


def _looks(path: Path) -> str:
    is_plain = path.is_file() and not path.is_symlink()
    content = hashlib.sha256(path.read_bytes()).hexdigest() if is_plain else ""
    return f"{path.lstat().st_mode:o} {content}"


def files_with(folder: Path, text: str) -> list[Path]:
    """Return the plain files below a folder that hold some text; what a temporary one held is in another by now."""
    found = []
    for path in sorted(folder.rglob("*")):
        with contextlib.suppress(FileNotFoundError):
            if path.is_file() and not path.is_symlink() and text.encode() in path.read_bytes():
                found.append(path)
    return found
