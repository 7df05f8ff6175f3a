"""What a shim and its like do where a file cannot be read: they look again, and take nothing for absent meanwhile."""

from __future__ import annotations

from collections.abc import Callable

from agentctl.adapters.files import storage_errors
from agentctl.errors import StorageError
from agentctl.lean import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TypeVar

    T = TypeVar("T")

#: The pause before what the disk has refused is tried again.
STORAGE_RETRY_S = 1.0


def patiently(look: Callable[[], T], path: str, wait: Callable[[StorageError], object]) -> T:
    """Return what a look at files says, however often it has to be made.

    Args:
        path: What is looked into, for an error that does not say that.
        wait: Called after each look that fails.
    """
    while True:
        try:
            with storage_errors(path, "look into"):
                return look()
        except StorageError as error:
            wait(error)
