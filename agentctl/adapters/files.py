"""Writes files so that nobody sees a half-written one, and no crash leaves one behind.

Everything is private to its owner (0700 and 0600).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
from collections.abc import Callable, Sequence

from agentctl.adapters.libc import libc
from agentctl.adapters.opening import MOST_BYTES, ODD_HINT, OddFile, kind_of, open_plain, read_bytes
from agentctl.adapters.signals import signal
from agentctl.domain.text.numbers import finite
from agentctl.errors import AgentctlError, AtTerminal, Damaged, StorageError
from agentctl.lean import Any
from agentctl.world_errors import FULL, error_in_words, next_step

AnyPath = str | os.PathLike[str]
_MANY = 16
#: For renameat2(2), from <fcntl.h> and <linux/fs.h>.
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
#: Each of these marks may become a value of 80 bytes in memory.
_MARKS, _MOST_MARKS = (b",", b"[", b"{"), 1 << 20
#: So often a call is made again that was interrupted.
_MOST_INTERRUPTIONS = 100
#: With no more brackets than `nesting.DEEPEST` no value is too deep.
_MANY_BRACKETS = 300
_ENCODER = json.JSONEncoder(ensure_ascii=False)


class storage_errors:  # noqa: N801 - it is used as a function; a generator would cost a shim 0.1 ms for each worker
    """Turn an error of the world into a `StorageError` that says what was to be done, and where.

    That nothing is there, or something else than was expected, is not one: whoever asks knows what follows from it.
    """

    __slots__ = ("_doing", "_path")

    def __init__(self, path: AnyPath, doing: str) -> None:
        self._path, self._doing = path, doing

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Raise the `StorageError` for `error`, where there is one."""
        if not isinstance(error, OSError) or error.errno == errno.EAGAIN:
            return
        what = f"{self._doing} {self._path}"
        if error.errno in FULL:
            raise StorageError(f"the disk is full: cannot {what}", hint="free some space, then try again") from error
        if (step := next_step(error)) is not None:
            raise StorageError(f"cannot {what}: {error.strerror}", hint=step) from error


def as_storage_error(error: AgentctlError | OSError) -> StorageError | None:
    """Return what the world has refused, be it named by now or not; None for an error of any other kind."""
    if isinstance(error, OSError):
        step = next_step(error)
        return None if step is None else StorageError(error_in_words(error), hint=step)
    return error if isinstance(error, StorageError) else None


def make_folder(path: AnyPath) -> None:
    """Make a private folder; the one above it must be there, or else `FileNotFoundError` is raised.

    So whoever writes into what somebody has removed makes nothing of it again.
    """
    with storage_errors(path, "make the folder"):
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            if os.path.islink(path) or not os.path.isdir(path):
                raise OddFile(
                    f"{os.fspath(path)} is not a folder, but {kind_of(path) or 'a file'}", hint=ODD_HINT
                ) from None


def make_folders(path: AnyPath) -> None:
    """Make a private folder, and the missing ones above it: for a new root, and for what lies in none."""
    above = os.path.dirname(path)
    if above and not os.path.isdir(above):
        with storage_errors(path, "make the folder"):
            make_folders(above)  # os.makedirs would give the upper ones the umask's mode.
    make_folder(path)


def sync_folder(path: AnyPath) -> None:
    """Make the names in a folder survive a power cut."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        # Some file systems (FUSE, 9p) cannot fsync a folder; then the rename is as durable as they make it.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes, refused: Callable[[OSError], None] | None = None) -> None:
    """Write every byte; on a full disk, a write may be short without an error, and only the next one fails.

    Args:
        refused: Called with the error of a write; once it returns, the rest is written. Without it, errors are raised.
    """
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except OSError as error:
            if refused is None:
                raise
            refused(error)


def write_in_place(fd: int, data: bytes) -> None:
    """Make `data` the content of an open file: a locked file cannot be replaced by a rename.

    The file's offset plays no part in it: whoever hands a lock over shares it, and may write at the same moment.
    """
    done = 0
    while done < len(data):
        done += os.pwrite(fd, data[done:], done)
    if os.fstat(fd).st_size > len(data):
        os.ftruncate(fd, len(data))


def _write_beside(path: AnyPath, data: bytes, durable: bool) -> str:
    """Write `data` to a file of a unique name beside `path`; return that name."""
    temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        try:
            write_all(fd, data)
            if durable:
                os.fsync(fd)
        finally:
            os.close(fd)
    except BaseException:
        os.unlink(temporary)
        raise
    return temporary


def write_whole(path: AnyPath, data: bytes, *, durable: bool = True) -> None:
    """Replace the content of `path` by `data`: a reader sees the old content or the new, never a part.

    Args:
        durable: On disk, and not only in memory, when this returns.
    """
    with storage_errors(path, "write"):
        _put(_write_beside(path, data, durable), path)
        if durable:
            sync_folder(os.path.dirname(path))


def replace_if_same(path: AnyPath, was: bytes, data: bytes) -> bool:
    """Replace, durably, a file that somebody else may be saving; return False, with theirs in place, where they did."""
    folder = os.path.dirname(path)
    with storage_errors(path, "write"):
        beside = _write_beside(path, data, durable=True)
        try:
            is_same = put_if_same(beside, path, was)
            sync_folder(folder)
            # The kernel finds the file that a save names before it notes that it is being written: such a save may only
            # now have begun.
            if is_same and os.path.exists(beside) and not _is_left(beside, was):
                is_same = False
                _put_back(beside, path)
                sync_folder(folder)
        finally:
            with contextlib.suppress(FileNotFoundError):
                _repeated(os.unlink, beside)
        return is_same


def put_if_same(beside: AnyPath, path: AnyPath, was: bytes) -> bool:
    """Put the file `beside` into the place of another if that still holds `was`; return whether it did.

    The two files change places, and only then is it known what was replaced: a look before leaves a moment in which a
    save would be lost. Where the file system cannot do that (NFS), such a look is all there is. What then lies beside
    is the caller's to remove.
    """
    if not _exchange(beside, path):
        is_same = _holds(path, was)
        if is_same:
            _rename(beside, path)
        return is_same
    is_same = False
    try:
        is_same = _is_left(beside, was)
    finally:
        if not is_same:
            _put_back(beside, path)
    return is_same


def _put_back(beside: AnyPath, path: AnyPath) -> None:
    if not _exchange(beside, path):
        _rename(beside, path)


def _exchange(one: AnyPath, other: AnyPath) -> bool:
    """Have two files change places (renameat2(2)); return False where that cannot be done."""
    names = os.fsencode(one), os.fsencode(other)
    return libc("renameat2", _AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0


def _holds(path: AnyPath, data: bytes) -> bool:
    with os.fdopen(open_plain(path), "rb") as file:
        return file.read(len(data) + 1) == data


def _is_left(path: AnyPath, was: bytes) -> bool:
    """Return whether a file still holds `was`, and nobody has it open to change that."""
    with os.fdopen(open_plain(path), "rb") as file:
        return not _is_being_written(file.fileno()) and file.read(len(was) + 1) == was


def _is_being_written(fd: int) -> bool:
    """Return whether anybody has a file open for writing; False where that cannot be known.

    Nobody gets a lease for reading on such a file: fcntl(2), "Leases". There are none on NFS, and outside of Linux. Who
    opens the file while the lease is held waits for that moment, and the holder gets a signal; SIGURG is ignored where
    nobody handles it, while SIGIO, which is sent otherwise, would end this process.
    """
    try:
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except AttributeError:
        return False
    except OSError as error:
        return error.errno == errno.EAGAIN
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False


def _put(temporary: str, path: AnyPath) -> None:
    """Rename a file to its path; a folder there, which only a worker can have made, is set aside."""
    try:
        _rename(temporary, path)
    except (IsADirectoryError, FileExistsError):
        set_aside(path)
        _rename(temporary, path)


def _rename(temporary: AnyPath, path: AnyPath) -> None:
    """Rename a file of a name of its own; whoever was interrupted (FUSE) may have done it all the same."""
    try:
        os.rename(temporary, path)
    except InterruptedError:
        with contextlib.suppress(FileNotFoundError):
            _repeated(os.rename, temporary, path)


def _repeated(call: Callable[..., None], *paths: AnyPath) -> None:
    """Make a system call that Python does not repeat by itself where it is interrupted (EINTR, by FUSE)."""
    try:
        return call(*paths)
    except InterruptedError:
        for _ in range(_MOST_INTERRUPTIONS):
            with contextlib.suppress(InterruptedError):
                return call(*paths)
        raise


def set_aside(path: AnyPath) -> str:
    """Rename whatever is in the place of a file of ours, in the same folder; return the new name."""
    aside = f"{os.fspath(path)}.{os.urandom(4).hex()}.damaged"
    with storage_errors(path, "set aside"):
        os.rename(path, aside)
    return aside


def create_whole(path: AnyPath, data: bytes, *, durable: bool = True) -> bool:
    """Create `path` with `data`, durably, unless it exists; return whether it was created.

    If several race, one wins and the others see its whole file: creating a hard link is atomic.

    Args:
        durable: On disk, and not only in memory, when this returns; for many files, `make_durable` is faster.
    """
    with storage_errors(path, "write"):
        temporary = _write_beside(path, data, durable)
        try:
            return _link(temporary, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                _repeated(os.unlink, temporary)
            if durable:
                sync_folder(os.path.dirname(path))


def _link(temporary: str, path: AnyPath) -> bool:
    try:
        _repeated(os.link, temporary, path)
    except FileExistsError:
        return os.path.samestat(os.lstat(temporary), os.lstat(path))  # By a call of ours that was interrupted?
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EMLINK):
            raise
        # No hard links here (exFAT, some FUSE). The callers hold the instance's lock, so this check is safe.
        if os.path.exists(path):
            return False
        os.rename(temporary, path)
    return True


def make_durable(paths: Sequence[AnyPath], folder: AnyPath) -> None:
    """Make files, their names, and the names of their folders in `folder` survive a power cut.

    For many at once the whole file system is flushed: 500 workers take one flush instead of 1,000.
    """
    with storage_errors(folder, "flush"):
        if len(paths) > _MANY and _flush_file_system(folder):
            return
        for path in paths:
            fd = open_plain(path)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        for name in dict.fromkeys([*map(os.path.dirname, paths), os.fspath(folder)]):
            sync_folder(name)


def _flush_file_system(folder: AnyPath) -> bool:
    """Flush the file system that `folder` lies on (syncfs(2)); return whether that worked."""
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return libc("syncfs", fd) == 0
    finally:
        os.close(fd)


def to_json(value: Any) -> bytes:
    """Return `value` as one readable line of JSON; a byte that is not UTF-8 becomes a JSON escape."""
    return _ENCODER.encode(value).encode("utf-8", "backslashreplace") + b"\n"


def read_json(path: AnyPath) -> dict[str, Any] | None:
    """Return the object in a file; None where there is no file.

    Raises:
        Damaged: The file is not a JSON object, or cannot be a file of ours.
    """
    try:
        data = read_bytes(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return json_in(data, path)


def json_in(data: bytes, path: AnyPath) -> dict[str, Any]:
    """Return the JSON object that the content of a file is.

    Raises:
        Damaged: As `read_json` does.
    """
    if len(data) > _MOST_MARKS and sum(map(data.count, _MARKS)) > _MOST_MARKS:
        raise OddFile(
            f"{path} holds more values than any file of agentctl", hint=AtTerminal("agentctl doctor looks at it")
        )
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Damaged(f"{path} is damaged: {error}", hint=AtTerminal("agentctl doctor --fix")) from error
    if not isinstance(value, dict):
        raise Damaged(f"{path} is damaged: not a JSON object", hint=AtTerminal("agentctl doctor --fix"))
    if data.count(b"[") + data.count(b"{") > _MANY_BRACKETS and _is_too_deep(value):
        raise OddFile(
            f"{path} is nested deeper than any file of agentctl", hint=AtTerminal("agentctl doctor looks at it")
        )
    return value


def _is_too_deep(value: dict[str, Any]) -> bool:
    from agentctl.domain.text.nesting import is_too_deep  # Hardly any file of ours has so many brackets.

    return is_too_deep(value)


def read_known(path: AnyPath) -> dict[str, Any]:
    """Return the object in a file; {} where there is none, or what is there is not one.

    Raises:
        StorageError: It cannot be read, so it is not known whether there is one.
    """
    try:
        return read_json(path) or {}
    except Damaged:
        return {}
    except OSError:
        with storage_errors(path, "read"):
            raise


def file_text(path: AnyPath, encoding: str = "utf-8", most: int = MOST_BYTES) -> str:
    """Return the text in a file; empty where there is none, or what is there is not one.

    Raises:
        StorageError: It cannot be read, so it is not known whether there is one.
    """
    with storage_errors(path, "read"):
        try:
            return read_bytes(path, most).decode(encoding)
        except (FileNotFoundError, NotADirectoryError, Damaged, UnicodeDecodeError):
            return ""


def read_to_show(path: AnyPath) -> dict[str, Any]:
    """Return the object in a file for a view that shows the rest without it; nothing is decided by it or written."""
    try:
        return read_known(path)
    except StorageError:
        return {}


def number_in(path: AnyPath, key: str) -> float | None:
    """Return the number under `key` in a file; None where there is none that `finite` accepts."""
    return finite(read_known(path).get(key))
