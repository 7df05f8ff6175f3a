"""Opens the files of a task safely: nothing found there can block the reader, lead elsewhere, or be endless.

The author of a repository, and every worker, can put something else in the place of a file of ours: a link to a file of
the person (which would be cut, or written to), a FIFO (at which open(2) sleeps until another process opens it), a
device, a terabyte-sized file without content. Opening one of these fails at once, and changes nothing.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator

from agentctl.errors import AtTerminal, Damaged

#: More than any file that is read as a whole; the last words of an agent may have some megabytes.
MOST_BYTES = 16 << 20
#: Most files are shorter; a large buffer would be allocated and freed for each of them.
_FIRST, _BLOCK, _PIECE = 1 << 12, 1 << 16, 1 << 20
#: O_NONBLOCK: open(2) does not wait for the other end of a FIFO. It means nothing for a plain file.
_ALWAYS = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
#: The errors of open(2) for a link under O_NOFOLLOW (FreeBSD: EMLINK), a FIFO that nobody reads, a folder, a socket,
#: and a file on which a process holds a lease (fcntl(2)), for whose release open(2) would otherwise wait.
ODD_ERRORS = frozenset(
    {errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.EISDIR, errno.EOPNOTSUPP, errno.ENODEV, errno.EWOULDBLOCK}
)
#: The error for a link in the place of a folder is that for anything else there.
_ODD_ON_THE_WAY = ODD_ERRORS | {errno.ENOTDIR}
#: Of these, a file itself may be the cause, whoever has made it so; of any other error, the disk is, or a limit.
OF_THE_FILE = ODD_ERRORS | {errno.EACCES, errno.EPERM}
#: `doctor` does not look into foreign tasks, templates, or the files of other programs.
ODD_HINT = (
    "look at it, and remove it",
    AtTerminal("in a root and in tasks of your own `agentctl doctor --fix` sets it aside"),
)
_KINDS = (
    (stat.S_ISLNK, "a link"), (stat.S_ISFIFO, "a FIFO"), (stat.S_ISDIR, "a folder"), (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"),
)  # fmt: skip


class OddFile(Damaged, OSError):
    """Something other than a plain file is in the place of a file of ours, or a file too large to be ours.

    Also an `OSError`: code that copes with a missing or unreadable file copes with this.
    """


def open_plain(path: str | os.PathLike[str], flags: int = os.O_RDONLY, mode: int = 0o600) -> int:
    """Open a plain file, and nothing else; never waits.

    Raises:
        OddFile: It is a link, a FIFO, a device, a folder or the like, or leased to a process.
    """
    try:
        fd = os.open(path, flags | _ALWAYS, mode)
    except OSError as error:
        if error.errno in ODD_ERRORS and (kind := _kind_at_refusal(path, error)) is not None:
            raise OddFile(_message(path, kind), hint=ODD_HINT) from error
        raise
    except ValueError as error:  # A NUL, half a character: no file has such a name.
        raise OddFile(f"{os.fspath(path)!a} cannot be a file") from error
    found = os.fstat(fd).st_mode
    if not stat.S_ISREG(found):
        os.close(fd)
        raise OddFile(_message(path, _kind(found)), hint=ODD_HINT)
    return fd


def _kind_at_refusal(path: str | os.PathLike[str], error: OSError) -> str | None:
    """Return what is there instead of a plain file; None: the disk fails, which gives some of these errors, too."""
    return "leased to a process" if error.errno == errno.EWOULDBLOCK else kind_of(path)


def _message(path: str | os.PathLike[str], kind: str | None) -> str:
    return f"{os.fspath(path)} is not a plain file: it is {kind or 'something else'}"


def refuse_odd(path: str | os.PathLike[str]) -> None:
    """Raise `OddFile` where a path that others are to open is something other than a plain file."""
    kind = kind_of(path)
    if kind is not None:
        raise OddFile(_message(path, kind), hint=ODD_HINT)


def kind_of(path: str | os.PathLike[str]) -> str | None:
    """Return in words what is at a path instead of a plain file; None where it is one, or nothing is there."""
    try:
        return _kind(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return None


def _kind(mode: int) -> str | None:
    return next((word for is_one, word in _KINDS if is_one(mode)), None)


def read_bytes(path: str | os.PathLike[str], most: int = MOST_BYTES) -> bytes:
    """Return the content of a plain file: with five system calls for a small one, where `open` makes eight.

    Raises:
        OddFile: It is not a plain file, or holds more than `most` bytes.
        OSError: It is not there, or cannot be read; the error names it.
    """
    fd = open_plain(path)
    try:
        parts, size = [os.read(fd, _FIRST)], 0
        while parts[-1]:
            size += len(parts[-1])
            if size > most:
                raise OddFile(
                    f"{os.fspath(path)} is larger than {most} bytes", hint=AtTerminal("agentctl doctor looks at it")
                )
            parts.append(os.read(fd, _FIRST if len(parts) == 1 else _BLOCK))
        return b"".join(parts)
    except OSError as error:
        if error.errno is not None:
            error.filename = os.fspath(path)  # A call on a descriptor does not know its name.
        raise
    finally:
        os.close(fd)


def pieces(fd: int, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield the data of a file, piece by piece with its offset; a terabyte without data takes no time (lseek(2))."""
    while start < end:
        try:
            start = os.lseek(fd, start, os.SEEK_DATA)
        except OSError:
            return  # ENXIO: a hole to the end.
        data = os.pread(fd, min(_PIECE, end - start), start)
        if not data:
            return
        yield start, data
        start += len(data)


def open_beneath(base: str, below: str) -> int:
    """Open a plain file below a folder, which itself may be reached through links; behind it, none is followed.

    Args:
        below: Its path from there.

    Raises:
        OddFile: It is not a plain file, or a link or something else is on the way.
    """
    *folders, name = below.split("/")
    place = os.open(base, _FOLDER)
    try:
        for folder in folders:
            inner = _opened(folder, _FOLDER | os.O_NOFOLLOW, place)
            os.close(place)
            place = inner
        fd = _opened(name, os.O_RDONLY | _ALWAYS, place)
    finally:
        os.close(place)
    if stat.S_ISREG(kind := os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise OddFile(_message(os.path.join(base, below), _kind(kind)), hint=ODD_HINT)


def _opened(name: str, flags: int, place: int) -> int:
    """Open what is called so in a folder that is open."""
    if name in {"", ".", ".."}:
        raise OddFile(f"{name!r} is not the name of a file")
    try:
        return os.open(name, flags, dir_fd=place)
    except OSError as error:
        if error.errno in _ODD_ON_THE_WAY:
            raise OddFile(f"{name} is a link, or something else that leads to no plain file") from error
        raise
    except ValueError as error:
        raise OddFile(f"{name!a} cannot be a file") from error
