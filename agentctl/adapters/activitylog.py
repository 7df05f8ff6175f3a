"""The file of a worker's activity: its driver and `report` append to it, and it is read while it grows.

A newline commits a line, as in the log of a task. Nothing is decided by an activity, so it is not flushed.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator

from agentctl.adapters import eventlog
from agentctl.adapters.files import AnyPath, storage_errors, sync_folder, write_all
from agentctl.adapters.locks import locked
from agentctl.adapters.opening import open_plain
from agentctl.adapters.tails import read_tail


class ActivityWriter:
    """Appends lines so that all of them are in the file, whole and together, or none."""

    def __init__(self, path: AnyPath) -> None:
        self.path = path

    def write(self, lines: bytes) -> None:
        """Append whole lines with one write.

        Raises:
            StorageError: The disk is full or read-only; the file is as it was.
            LockTimeout: Another writer is stuck.
        """
        with storage_errors(self.path, "append to"), locked(self.path) as fd:
            size = eventlog.cut_torn_tail(fd)
            fcntl.fcntl(fd, fcntl.F_SETFL, os.O_APPEND)
            try:
                write_all(fd, lines)
            except BaseException:
                os.ftruncate(fd, size)
                raise


class ActivityReader:
    """Reads an activity from its start, then what has come since, in blocks of whole lines."""

    def __init__(self, path: AnyPath, offset: int = 0) -> None:
        self.path = path
        self._offset = offset
        self._inode: int | None = None

    def is_replaced(self) -> bool:
        """Return whether the file was replaced or cut, so that what was read so far no longer counts."""
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            return self._inode is not None
        return (self._inode is not None and found.st_ino != self._inode) or found.st_size < self._offset

    def restart(self) -> None:
        """Begin again at the start of the file."""
        self._offset, self._inode = 0, None

    def blocks(self) -> Iterator[bytes]:
        """Yield the lines committed since the last call, in the memory of one block or one line."""
        try:
            fd = open_plain(self.path)
        except FileNotFoundError:
            return
        try:
            self._inode = os.fstat(fd).st_ino
            for self._offset, lines in eventlog.blocks(fd, self._offset):  # noqa: B020 - read before it is set again
                if lines:
                    yield lines
        finally:
            os.close(fd)


def last_lines(path: AnyPath, most_bytes: int) -> list[bytes]:
    """Return the whole lines in the last bytes of an activity, the last line first; none where there is no file."""
    try:
        data, size = read_tail(path, most_bytes)
    except OSError:
        return []
    lines = data.split(b"\n")[:-1]
    return lines[:0:-1] if size > most_bytes else lines[::-1]  # The first one may lack its beginning.


def replace(path: AnyPath, lines: Iterable[bytes]) -> int:
    """Replace an activity by another, whole and durable; return how many lines it has.

    The lock of the old file is held, so that nobody appends to a file that is about to go.
    """
    temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    number = 0
    with storage_errors(path, "write"), locked(path):
        try:
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
                for number, line in enumerate(lines, 1):  # noqa: B007 - how many there were
                    file.write(line)
                file.flush()
                os.fsync(file.fileno())
            os.rename(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
        sync_folder(os.path.dirname(path))
    return number
