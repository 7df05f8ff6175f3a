"""Where the file tools may go: what is free, what is asked about, and what is closed whatever anybody answers.

Paths are resolved, and a file is then opened by its resolved path without following any link: so a folder that is
swapped for a link in between leads nowhere.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from agentctl.adapters.taskdir import ROOT_NAME
from agentctl.domain.text.containment import lies_in
from agentctl.worker_programs.plain_model.toolbox.tool_errors import ToolError

_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_LINKED = frozenset({errno.ELOOP, errno.EMLINK, errno.ENOTDIR})
MOVED = "it was moved or replaced by a link meanwhile: nothing was done"


class Places:
    """The folder of an agent, and the walls around it.

    Args:
        walls: As an order has them (`operations/start/walls.py`); {} where there are none.
        own: A folder outside that may be read freely: the agent's own whole outputs.
    """

    def __init__(self, folder: str, walls: Mapping[str, Any], own: str) -> None:
        self.folder = os.path.realpath(folder)
        self._own = os.path.realpath(own)
        inner = list(map(str, walls.get("inRoot") or ()))
        # In a worktree, which lies in the root, the other parts of the root are closed one by one.
        around = [str(path) for path in walls.get("closed") or () if not (inner and lies_in(self.folder, str(path)))]
        self._closed: Sequence[str] = [*around, *inner]
        self._hidden: Sequence[str] = list(map(str, walls.get("hidden") or ()))

    @property
    def hidden(self) -> Sequence[str]:
        """The paths that may not even be read."""
        return self._hidden

    def real(self, path: str) -> str:
        """Return where a path leads, a relative one from the agent's folder; what is not there yet, where it would be.

        Raises:
            ToolError: It leads nowhere.
        """
        if not path or "\0" in path:
            raise ToolError("the path is empty, or none")
        try:
            return os.path.realpath(os.path.join(self.folder, os.path.expanduser(path)))
        except (OSError, ValueError) as error:
            raise ToolError(f"{path} cannot be resolved: {error}") from error

    def shown(self, path: str, real: str) -> str:
        """Return a path as it is shown to whoever allows it: as it was written, unless a link leads it elsewhere.

        So what is shown is what is done, whatever becomes of that link meanwhile.
        """
        return path if os.path.normpath(os.path.join(self.folder, path)) == real else real

    def is_free(self, real: str) -> bool:
        """Return whether a resolved path may be read without asking: it lies in the agent's folder."""
        return any(real == folder or lies_in(real, folder) for folder in (self.folder, self._own))

    def check_read(self, path: str, real: str) -> None:
        """Raise `ToolError` where a path is hidden."""
        if _is_behind(real, self._hidden):
            raise ToolError(f"{path} is closed to this agent")

    def check_write(self, path: str, real: str) -> None:
        """Raise `ToolError` where a path is closed: such files decide what runs outside of the agent's folder."""
        inside = real[len(self.folder) :] if lies_in(real, self.folder) else ""
        is_root = f"/{ROOT_NAME}/" in f"{inside}/"
        if is_root or _is_behind(real, [*self._closed, *self._hidden]):
            raise ToolError(f"{path} is closed to this agent: its files decide what runs outside of it")

    def check_same(self, path: str, real: str) -> None:
        """Raise `ToolError` where a path leads elsewhere by now than when it was shown."""
        if self.real(path) != real:
            raise ToolError(f"{path} leads elsewhere now: {MOVED}")


def _is_behind(real: str, walls: Sequence[str]) -> bool:
    return any(real == wall or lies_in(real, wall) for wall in walls)


@contextmanager
def folder_of(real: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """Yield the folder of a resolved path, as a descriptor, and the name in it; no link is followed on the way.

    Args:
        make: Make the folders that are missing.

    Raises:
        ToolError: A folder was replaced by a link, or is not a folder.
        FileNotFoundError: There is no such folder.
    """
    *folders, name = [part for part in real.split("/") if part] or [""]
    place = os.open("/", _FOLDER)
    try:
        for part in folders:
            place = _step(place, part, real, make=make)
        yield place, name or "."
    finally:
        os.close(place)


def _step(place: int, part: str, real: str, *, make: bool) -> int:
    """Return the folder in another one, which is closed."""
    try:
        if make:
            try:
                os.mkdir(part, 0o777, dir_fd=place)
            except OSError:
                pass  # It is there, or cannot be made: the open says why.
        below = os.open(part, _FOLDER, dir_fd=place)
    except OSError as error:
        if error.errno in _LINKED:
            raise ToolError(f"{real}: {MOVED}") from error
        raise
    os.close(place)
    return below


def open_file(real: str, flags: int = os.O_RDONLY) -> int:
    """Open a plain file by its resolved path, following no link and waiting for nothing.

    Raises:
        ToolError: It is not a plain file, or cannot be opened; the message says why.
    """
    try:
        with folder_of(real) as (folder, name):
            fd = os.open(name, flags | _FILE, dir_fd=folder)
    except OSError as error:
        raise ToolError(f"{real}: {_why(error)}") from error
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return fd
    os.close(fd)
    raise ToolError(f"{real} is {'a folder' if stat.S_ISDIR(mode) else 'no plain file (a device, FIFO or socket)'}")


def open_folder(real: str) -> int:
    """Open a folder by its resolved path, following no link.

    Raises:
        ToolError: It is not a folder, or cannot be opened.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with folder_of(real) as (folder, name):
            return os.open(name, flags, dir_fd=folder)
    except OSError as error:
        raise ToolError(f"{real}: {_why(error)}") from error


@contextmanager
def looked_into(real: str) -> Iterator[tuple[int, str, str | None]]:
    """Yield the open folder of a resolved path to look into, its path, and the only name where a file was named.

    Raises:
        ToolError: It cannot be opened.
    """
    is_folder = os.path.isdir(real)
    base = real if is_folder else os.path.dirname(real)
    fd = open_folder(base)
    try:
        yield fd, base, None if is_folder else os.path.basename(real)
    finally:
        os.close(fd)


def _why(error: OSError) -> str:
    if error.errno in _LINKED:
        return MOVED
    if error.errno in {errno.ENXIO, errno.EOPNOTSUPP}:
        return "it is not a plain file (a device, FIFO or socket)"
    return (error.strerror or "it cannot be opened").lower()
