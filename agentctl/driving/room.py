"""What must not be lost waits until the disk takes it: nothing goes on before."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from agentctl.errors import StorageError

#: How often a full disk is tried again.
STORAGE_RETRY_S = 0.5

T = TypeVar("T")


def when_there_is_room(write: Callable[[], T]) -> T:
    """Write, as soon as the disk takes it."""
    while True:
        try:
            return write()
        except StorageError:
            time.sleep(STORAGE_RETRY_S)
