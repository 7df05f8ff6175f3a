"""Copies what a worker on a node writes about itself into its folder at the head, where every command reads it.

The files that grow (output, activity) begin on the node with a hole as long as they are at the head already. So an
offset means the same in both, and what is missing at the head is what lies behind its end: a stand-in that is killed in
between loses and doubles nothing.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Mapping

from agentctl.adapters.files import make_folder, write_all, write_whole
from agentctl.adapters.opening import OddFile, open_plain, pieces, read_bytes
from agentctl.adapters.paths import FilePath
from agentctl.adapters.tails import file_version
from agentctl.adapters.taskdir import WorkerDir, names_in
from agentctl.errors import StorageError
from agentctl.worker_programs.on_node.exchange.written_state import (
    GROWING,
    LINES,
    MOST_FILES,
    READ,
    WHOLE,
    look_again,
)

_PIECE, _MOST_AT_ONCE = 1 << 20, 64 << 20


class Mirror:
    """The files of a worker here, and those of the same worker on its node."""

    def __init__(self, here: WorkerDir, there: WorkerDir) -> None:
        self._here, self.there = here, there
        self._versions: dict[str, tuple[int, int, int]] = {}

    def step(self) -> bool:
        """Copy what has come since the last step; return whether anything has.

        Raises:
            OSError: The disk here is full, or the folder of the launch cannot be read: the next step goes on.
        """
        look_again(self.there)
        # Files of lines are copied in whole lines, since others may append to them here.
        grown = [self._grow(name, lines=name in LINES) for name in GROWING]
        changed = [self._replace(getattr(self.there, name), getattr(self._here, name)) for name in WHOLE]
        return any(grown) or any(changed) or self._note_read()

    def finish(self) -> None:
        """Copy what is left, once the worker has ended; what is written from now on is nothing of its own."""
        self._versions.clear()  # Over NFS, what a stat says may be old; to read a file anew is right.
        longest = max(_size_of(getattr(self.there, name)) for name in GROWING)
        for _ in range(2 + 2 * (longest // _MOST_AT_ONCE)):
            if not self.step():
                break
        for there, here in ((self.there.texts, self._here.texts), (self.there.turn_objects, self._here.turn_objects)):
            with contextlib.suppress(OddFile, OSError):  # Of the latter is shutil.Error too.
                _copy_folder(there, here)

    def _grow(self, name: str, *, lines: bool) -> bool:
        there, here = getattr(self.there, name), getattr(self._here, name)
        try:
            source = open_plain(there)
        except (FileNotFoundError, NotADirectoryError, OddFile):
            return False
        try:
            begin = _size_of(here)
            hole = _end_of_hole(source, begin)
            if hole - begin >= _MOST_AT_ONCE:
                return not lines and _extend(here, hole)
            end = min(os.fstat(source).st_size, begin + _MOST_AT_ONCE)
            if lines:
                end = _last_newline(source, begin, end)
            if end > begin:
                _append(source, here, begin, end)
                return True
            return False
        finally:
            os.close(source)

    def _replace(self, there: FilePath, here: FilePath) -> bool:
        try:
            version = file_version(there)
        except (FileNotFoundError, NotADirectoryError):
            return False
        if self._versions.get(there) == version:
            return False
        with contextlib.suppress(OddFile, StorageError, FileNotFoundError):
            write_whole(here, read_bytes(there), durable=there == self.there.result)
            self._versions[there] = version
            return True
        return False

    def _note_read(self) -> bool:
        """Copy how many messages were read."""
        if not self.there.inbox.exists():
            return False
        make_folder(self._here.inbox)
        return self._replace(self.there.inbox / READ, self._here.inbox / READ)


def sizes_of(worker: WorkerDir) -> dict[str, int]:
    """Return how long the files that grow are at the head: as long a hole they begin with on the node."""
    return {name: size for name in GROWING if (size := _size_of(getattr(worker, name)))}


def make_holes(worker: WorkerDir, sizes: Mapping[str, object]) -> None:
    """Begin the files that grow with holes of these sizes, on the node."""
    for name in GROWING:
        size = sizes.get(name, 0)
        if isinstance(size, int) and size > 0:
            fd = open_plain(getattr(worker, name), os.O_WRONLY | os.O_CREAT)
            try:
                os.ftruncate(fd, size)
            finally:
                os.close(fd)


def _size_of(path: FilePath) -> int:
    try:
        return os.stat(path).st_size
    except (FileNotFoundError, NotADirectoryError):
        return 0


def _end_of_hole(fd: int, begin: int) -> int:
    """Return where the data begins again behind an offset, or the file ends: a worker can make it a terabyte long."""
    try:
        return os.lseek(fd, begin, os.SEEK_DATA)
    except OSError as error:
        is_to_its_end = error.errno == errno.ENXIO  # Other errors: a file system that does not tell.
        return max(begin, os.fstat(fd).st_size) if is_to_its_end else begin


def _extend(path: FilePath, size: int) -> bool:
    """Make a file longer by a hole: it takes no room; return True."""
    fd = open_plain(path, os.O_WRONLY | os.O_CREAT)
    try:
        os.ftruncate(fd, size)
    finally:
        os.close(fd)
    return True


def _last_newline(fd: int, begin: int, end: int) -> int:
    """Return the offset behind the last newline between two offsets; `begin` where there is none."""
    while end > begin:
        start = max(begin, end - _PIECE)
        newline = os.pread(fd, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return begin


def _append(source: int, path: FilePath, begin: int, end: int) -> None:
    target = open_plain(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        while begin < end and (piece := os.pread(source, min(_PIECE, end - begin), begin)):
            write_all(target, piece)
            begin += len(piece)
    finally:
        os.close(target)


def _copy_folder(there: FilePath, here: FilePath) -> None:
    """Copy the entries of a folder that are not here yet; links are left out, since they could lead anywhere."""
    for name in names_in(there, MOST_FILES):
        source, target = there / name, here / name
        if os.path.islink(source) or os.path.lexists(target):
            continue
        make_folder(here)
        if source.is_dir():
            import shutil  # With it come three compressors, and few workers have such folders.

            shutil.copytree(source, target, symlinks=True, copy_function=_copy_plain)
        else:
            write_whole(target, read_bytes(source), durable=False)


def _copy_plain(there: str, here: str) -> None:
    """Copy a plain file, and nothing else; holes stay holes."""
    source = open_plain(there)
    try:
        target = open_plain(here, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            size = os.fstat(source).st_size
            for offset, data in pieces(source, 0, size):
                os.lseek(target, offset, os.SEEK_SET)
                write_all(target, data)
            os.ftruncate(target, size)
        finally:
            os.close(target)
    finally:
        os.close(source)
