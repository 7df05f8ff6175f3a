"""Puts something odd in the place of each FILE of its own folder, prints `ready`, and sleeps until it is ended.

    tampers.py KIND FILE...

KIND: fifo, folder, socket, deep (JSON that is nested too deep), sparse (a terabyte without content), link (to the file
that TAMPERS_VICTIM names), lease (the file is as it was, and whoever opens it has to wait), nothing (the file is
removed).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import socket
import sys
from pathlib import Path

import bounded


def main() -> None:
    """Tamper, then outlive every polite request but a signal."""
    bounded.live_at_most()
    kind, folder = sys.argv[1], Path(os.environ["AGENTCTL_AGENT_DIR"])
    for name in sys.argv[2:]:
        tamper(kind, folder / name)
    bounded.end_quietly_on_int()
    bounded.say("ready")
    bounded.stay()


def tamper(kind: str, path: Path) -> None:
    """Put something odd at a path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "lease":
        lease(path)
        return
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        (path / "inside").mkdir(parents=True)
    elif kind == "socket":
        os.chdir(path.parent)  # The name of a socket may have a hundred characters.
        socket.socket(socket.AF_UNIX).bind(path.name)
    elif kind == "deep":
        path.write_text("[" * 100_000, encoding="ascii")
    elif kind == "sparse":
        path.touch()
        os.truncate(path, 1 << 40)
    elif kind == "link":
        path.symlink_to(os.environ["TAMPERS_VICTIM"])


def lease(path: Path) -> None:
    """Take a lease of a file, and let go of it for nobody; what somebody has open gives none."""
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        fcntl.fcntl(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), fcntl.F_SETLEASE, fcntl.F_WRLCK)


if __name__ == "__main__":
    main()
