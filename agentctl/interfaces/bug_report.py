"""Appends the traceback of an unexpected error to a private file.

Arguments are not recorded: `--env` may contain secrets.
"""

from __future__ import annotations

import os
import platform
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

from agentctl import __version__
from agentctl.adapters.personal import state_folder


def record_bug(error: BaseException) -> str:
    """Append the traceback to the first file that takes it; return its path, or where else it went."""
    text = _report(error)
    for path in _places():
        try:
            _append(path, text)
            return str(path)
        except (OSError, RuntimeError):
            continue  # no home, a full disk, a file of somebody else's: the next place
    traceback.print_exception(error)
    return "the lines above: no file could be written"


def _places() -> Iterator[Path]:
    yield Path(state_folder(os.environ)) / "bugs.log"
    yield Path(tempfile.gettempdir()) / f"agentctl-{os.geteuid()}-bugs.log"


def _append(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Other people write into TMPDIR too: their symlink or their file must not be taken for ours.
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise PermissionError(f"{path} belongs to somebody else")
        data = text.encode("utf-8", "backslashreplace")
        if os.write(descriptor, data) != len(data):
            raise OSError(f"{path} could not be written whole")
    finally:
        os.close(descriptor)


def _report(error: BaseException) -> str:
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    head = f"--- {at} agentctl {__version__}, Python {platform.python_version()}, {platform.platform()}"
    return "\n".join([head, *traceback.format_exception(error)]) + "\n"
