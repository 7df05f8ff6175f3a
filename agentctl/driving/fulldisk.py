"""Writes that must not be lost: on a full disk they wait until there is room."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from agentctl.errors import StorageError

#: The pause before a write to a full disk is tried again.
STORAGE_RETRY_S = 0.5

T = TypeVar("T")


def when_there_is_room(write: Callable[[], T]) -> T:
    """Call `write`, again and again while the disk is full; return its result."""
    while True:
        try:
            return write()
        except StorageError:
            time.sleep(STORAGE_RETRY_S)
