"""Writes and reads that must not be lost: they wait until there is room on the disk, and it answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from agentctl.errors import StorageError

#: The pause before a write to a full disk is tried again.
STORAGE_RETRY_S = 0.5

T = TypeVar("T")


def when_there_is_room(write: Callable[[], T]) -> T:
    """Call `write`, or what reads, again and again while the disk refuses; return its result."""
    while True:
        try:
            return write()
        except StorageError:
            time.sleep(STORAGE_RETRY_S)
