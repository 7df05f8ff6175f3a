"""Writes `+ PID` to FILE when it starts and `- PID` when it ends, so that a test can count who overlapped.

An append of one short line is atomic, and both lines are written while the worker has its slot: the order of
the lines is an order in which the workers were at work. It is at work for 0.02 s, with --until FILE at least
until that file is there.
"""

from __future__ import annotations

import argparse
import os
import time

import bounded


def main() -> None:
    """Be at work for a moment."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--until", metavar="FILE")
    options = parser.parse_args()
    bounded.live_at_most()
    note(options.file, "+")
    if options.until is not None:
        bounded.wait_for_file(options.until)
    time.sleep(0.02)
    note(options.file, "-")


def note(path: str, mark: str) -> None:
    """Append one line with a single write."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, f"{mark} {os.getpid()}\n".encode())
    os.close(fd)


if __name__ == "__main__":
    main()
