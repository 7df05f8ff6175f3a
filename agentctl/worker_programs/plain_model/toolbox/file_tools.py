"""Reads, edits and writes files for a model: bounded, and never anything but plain files."""

from __future__ import annotations

import contextlib
import io
import os
import stat
from itertools import islice

from agentctl.adapters.files import put_if_same, write_all
from agentctl.adapters.opening import OddFile
from agentctl.domain.text.plaintext import beginning, whole
from agentctl.worker_programs.plain_model.toolbox.reachable_paths import folder_of, open_file
from agentctl.worker_programs.plain_model.toolbox.tool_errors import ToolError

#: The longest file that is read, and the most of it that is shown at once.
_LARGEST = 32 << 20
_MOST_LINES, _MOST_BYTES, _LONGEST_LINE = 2000, 48_000, 2000
_BLOCK = 1 << 20
#: Where a NUL is looked for: text has none.
_HEAD = 8192


def read_file(real: str, first: int = 1, count: int | None = None) -> str:
    """Return lines of a file, each behind its number and a tab.

    Args:
        first: The number of the first line, from 1.

    Raises:
        ToolError: It is not a text file, or too large.
    """
    data = _text(real)
    if not data:
        return "(the file is empty)"
    lines = data.count(b"\n") + (not data.endswith(b"\n"))
    if first > lines:
        raise ToolError(f"{real} has only {lines} lines")
    # One line at a time: as a list, a file of short lines would take twenty times its size.
    wanted = islice(io.BytesIO(data), first - 1, first - 1 + min(max(1, count or _MOST_LINES), _MOST_LINES))
    shown: list[str] = []
    size = 0
    for number, raw in enumerate(wanted, first):
        line = raw.removesuffix(b"\n").decode("utf-8", "replace")
        text = beginning(line, _LONGEST_LINE)
        size += len(text) + 8
        if shown and size > _MOST_BYTES:
            break
        shown.append(f"{number}\t{text}")
    last = first + len(shown) - 1
    rest = f"\n[lines {first} to {last} of {lines}: go on with offset {last + 1}]" if last < lines else ""
    return "\n".join(shown) + rest


def edit_of(real: str, old: str, new: str, *, every: bool) -> tuple[bytes, bytes]:
    """Return the content of a file, and what it becomes with a text replaced.

    Raises:
        ToolError: The text is not in it, or more than once.
    """
    data, new = _text(real), whole(new)
    # Bytes that are not UTF-8 stay as they are.
    text = data.decode("utf-8", "surrogateescape")
    if old not in text and "\r\n" in text and "\r" not in old:
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    found = text.count(old)
    if found == 0:
        raise ToolError(f"old_string is not in {real}: it must match exactly, with all spaces; read the file again")
    if found > 1 and not every:
        raise ToolError(f"old_string is {found} times in {real}: give more of what is around it, or set replace_all")
    if len(text) + found * (len(new) - len(old)) > _LARGEST:
        raise ToolError(f"{real} would become larger than {_LARGEST} characters")
    return data, text.replace(old, new).encode("utf-8", "surrogateescape")


def put_file(real: str, data: bytes, was: bytes | None = None) -> bool:
    """Write a file whole or not at all, with the mode of the one it replaces; return whether there was one.

    Args:
        was: What has to be replaced, where that matters: somebody else may be saving the file.

    Raises:
        ToolError: There is something else than that, or than a plain file, or it cannot be written.
    """
    try:
        with folder_of(real, make=True) as (folder, name):
            mode = _mode_at(folder, name, real)
            beside = f".{name[:100]}.{os.getpid()}.tmp"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            fd = os.open(beside, flags, 0o666, dir_fd=folder)
            try:
                write_all(fd, data)
                if mode is not None:
                    os.fchmod(fd, mode)
                if not _put(folder, beside, name, was):
                    raise ToolError(f"{real} was changed meanwhile, or is open for writing: read it again")
            finally:
                os.close(fd)
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(beside, dir_fd=folder)
            return mode is not None
    except OddFile as error:
        raise ToolError(f"{real} is no longer a plain file: it is not replaced") from error
    except OSError as error:
        raise ToolError(f"{real} cannot be written: {(error.strerror or 'it failed').lower()}") from error


def _put(folder: int, beside: str, name: str, was: bytes | None) -> bool:
    """Put a file into the place of another in an open folder; return False where that no longer holds `was`."""
    here = f"/proc/self/fd/{folder}"
    if was is not None and os.path.isdir(here):
        return put_if_same(f"{here}/{beside}", f"{here}/{name}", was)
    os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)  # macOS: an open folder has no path there.
    return True


def _mode_at(folder: int, name: str, real: str) -> int | None:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise ToolError(f"{real} is not a plain file: it is not replaced")
    if not os.access(name, os.W_OK, dir_fd=folder):
        raise ToolError(f"{real} is write-protected")
    return stat.S_IMODE(found.st_mode)


def _text(real: str) -> bytes:
    """Return the content of a text file."""
    fd = open_file(real)
    try:
        size = os.fstat(fd).st_size
        if size > _LARGEST:
            raise ToolError(f"{real} has {size} bytes, too many to read: search it, or look at parts with shell")
        head = os.pread(fd, _HEAD, 0)
        if b"\0" in head:
            raise ToolError(f"{real} is a binary file of {size} bytes")
        parts, total = [], 0
        while block := os.read(fd, _BLOCK):
            total += len(block)
            if total > _LARGEST:
                raise ToolError(f"{real} is too large to read, or endless")
            parts.append(block)
        return b"".join(parts)
    except OSError as error:
        raise ToolError(f"{real} cannot be read: {(error.strerror or 'it failed').lower()}") from error
    finally:
        os.close(fd)
