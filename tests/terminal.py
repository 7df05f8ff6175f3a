"""Runs a program on a pseudo-terminal of its own, and returns everything that it wrote there."""

from __future__ import annotations

import os
import pty
import struct
import termios
from collections.abc import Mapping, Sequence
from fcntl import ioctl

from tests.support import start_argv


def on_a_terminal(
    argv: Sequence[str], *, width: int = 200, env: Mapping[str, str | None] | None = None
) -> tuple[int, bytes]:
    """Run a program with all three standard streams on a terminal; return its exit code and its output."""
    leader, follower = pty.openpty()
    ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    names = {"TERM": "xterm", "NO_COLOR": None, **(env or {})}
    process = start_argv(list(argv), stdin=follower, stdout=follower, stderr=follower, env=names)
    os.close(follower)
    sent = b""
    try:
        while chunk := os.read(leader, 65536):
            sent += chunk
    except OSError:
        pass  # Linux reports in this way that the other side is closed
    os.close(leader)
    return process.wait(timeout=20), sent
