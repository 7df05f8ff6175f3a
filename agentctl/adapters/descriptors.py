"""Reads and writes pipes and terminals that may be non-blocking: whoever shares one with this process may set that."""

from __future__ import annotations

import os


def write_some(fd: int, unwritten: bytearray) -> bool:
    """Write what a descriptor takes now, and remove it; return whether that was all."""
    if unwritten:
        try:
            del unwritten[: os.write(fd, unwritten)]
        except BlockingIOError:
            return False
    return not unwritten


def write_patiently(fd: int, data: bytes) -> None:
    """Write every byte, and wait while the descriptor takes none."""
    unwritten = bytearray(data)
    while not write_some(fd, unwritten):
        _wait(fd, for_writing=True)


def read_patiently(fd: int, most: int) -> bytes:
    """Wait until there is something to read, and return it; empty at the end."""
    while True:
        try:
            return os.read(fd, most)
        except BlockingIOError:
            _wait(fd, for_writing=False)


def _wait(fd: int, *, for_writing: bool) -> None:
    from select import select  # Hardly ever needed.

    select([] if for_writing else [fd], [fd] if for_writing else [], [])
