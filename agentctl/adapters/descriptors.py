"""Reads and writes descriptors: all of the data, and also where they do not block.

Whoever shares a pipe or a terminal with this process may have made it non-blocking.
"""

from __future__ import annotations

import os
from collections.abc import Callable


def write_all(fd: int, data: bytes, refused: Callable[[int, OSError], None] | None = None) -> None:
    """Write every byte; on a full disk, a write may be short without an error, and only the next one fails.

    Args:
        refused: Called with the descriptor and the error of a write; when it returns, the rest is written. Without it,
            the error is raised.
    """
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except OSError as error:
            if refused is None:
                raise
            refused(fd, error)


def until_it_takes_more(fd: int, error: OSError) -> None:
    """Wait for a non-blocking descriptor that takes nothing now; raise any other error. For `write_all`."""
    if not isinstance(error, BlockingIOError):
        raise error
    _wait(fd, for_writing=True)


def write_some(fd: int, unwritten: bytearray) -> bool:
    """Write what a non-blocking descriptor takes now, and remove it; return whether that was all."""
    try:
        while unwritten:
            del unwritten[: os.write(fd, unwritten)]
    except BlockingIOError:
        return False
    return True


def read_some(fd: int, most: int) -> bytes:
    """Wait until there is something to read, and return it; empty at the end."""
    while True:
        try:
            return os.read(fd, most)
        except BlockingIOError:
            _wait(fd, for_writing=False)


def _wait(fd: int, *, for_writing: bool) -> None:
    from select import select  # Hardly ever needed.

    select([] if for_writing else [fd], [fd] if for_writing else [], [])
