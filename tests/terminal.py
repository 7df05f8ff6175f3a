"""Runs a program on a pseudo-terminal of its own, and returns everything that it wrote there."""

from __future__ import annotations

import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from fcntl import ioctl

import pytest

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


class Terminal:
    """A program on a pseudo-terminal of its own, which a test reads and writes while it runs."""

    def __init__(
        self, argv: Sequence[str], *, width: int = 120, height: int = 24, env: Mapping[str, str | None] | None = None
    ) -> None:
        self._leader, follower = pty.openpty()
        ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        names = {"TERM": "xterm-256color", "NO_COLOR": None, "COLUMNS": None, "LINES": None, **(env or {})}
        self.process: subprocess.Popen[str] = start_argv(
            list(argv), stdin=follower, stdout=follower, stderr=follower, env=names
        )
        os.close(follower)
        self.sent = b""

    def until(self, text: str, limit_s: float = 20) -> None:
        """Read until the program has written a text since the last call."""
        before, give_up_at = len(self.sent), time.monotonic() + limit_s
        while text.encode() not in self.sent[before:]:
            if time.monotonic() > give_up_at or not self._read(give_up_at):
                pytest.fail(f"the program did not write {text!r}; it wrote {self.sent[before:]!r}")

    def _read(self, until: float) -> bool:
        ready, _, _ = select.select([self._leader], [], [], max(0.0, until - time.monotonic()))
        try:
            chunk = os.read(self._leader, 65536) if ready else b""
        except OSError:
            return False  # Linux reports in this way that the other side is closed.
        self.sent += chunk
        return bool(chunk)

    def drain(self) -> None:
        """Read until the program has ended."""
        while self._read(time.monotonic() + 1) or self.process.poll() is None:
            pass

    def write(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._leader, keys)

    def interrupt(self) -> None:
        """Press Ctrl-C: the terminal controls no session, so the signal is sent here."""
        self.process.send_signal(signal.SIGINT)

    def end(self, limit_s: float = 20) -> int:
        """Read to the end of the program; return its exit code."""
        give_up_at = time.monotonic() + limit_s
        while self._read(give_up_at):
            pass
        os.close(self._leader)
        return self.process.wait(timeout=limit_s)
