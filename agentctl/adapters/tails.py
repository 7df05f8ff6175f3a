"""The end of a file, and whether it is the same as at the last look: for views, and not for what each shim loads."""

from __future__ import annotations

import os

from agentctl.adapters.opening import open_plain


def read_tail(file: str | os.PathLike[str] | int, most: int) -> tuple[bytes, int]:
    """Return the last bytes of a plain file, at most so many, and the size of the whole.

    Args:
        file: Its path, or a descriptor, which stays open.

    Raises:
        OddFile, OSError: As `open_plain` does.
    """
    fd = file if isinstance(file, int) else open_plain(file)
    try:
        size = os.fstat(fd).st_size
        return os.pread(fd, most, max(0, size - most)), size
    finally:
        if fd is not file:
            os.close(fd)


def file_version(path: str | os.PathLike[str]) -> tuple[int, int, int]:
    """Return the inode, size and time of a file: after each change, or in the place of another file, it differs.

    Raises:
        OSError: It is not there, or cannot be looked at.
    """
    found = os.stat(path)
    return found.st_ino, found.st_size, found.st_mtime_ns
