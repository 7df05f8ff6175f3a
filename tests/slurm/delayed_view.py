"""A file system that shows late what others do, as a client of NFS may: `delayed_view.py FOLDER`.

It lies over a folder, at the same path. Of each folder in it, it remembers the names and what a stat says of them for
some seconds, and that all other names are missing: until then nobody sees here what was made, removed or replaced
beneath. To open a file asks anew about that one file, if its name is known. What is done through this file system is
done beneath at once, and seen at once. Each folder is remembered by itself: of two changes beneath, the later may be
seen first. It has files and folders only.

A line on stdin, `SECONDS PART LISTS`, says for how long folders are remembered that have this text in their path (a
slash: all), and whether one that is listed is asked anew, as NFS does it unless it is told otherwise (1 or 0). The line
is printed again. `inf` remembers all that is known until the next line. At first nothing is remembered. When stdin is
closed, the file system is unmounted: whoever holds its other end may be killed.
"""

from __future__ import annotations

import math
import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

_STAT = ("st_mode", "st_ino", "st_nlink", "st_uid", "st_gid", "st_size", "st_blocks")
_TIMES = ("st_atime", "st_mtime", "st_ctime")
#: utimensat(2): the time of now, and no time at all.
_NOW, _OMIT = (1 << 30) - 1, (1 << 30) - 2
Names = dict[str, os.stat_result]


class DelayedView:
    """The operations of the file system; a path begins with a slash, and is below the folder."""

    use_ns = True

    def __init__(self, folder: str) -> None:
        # What is beneath stays in reach by this descriptor when the file system lies above it.
        self._beneath = f"/proc/self/fd/{os.open(folder, os.O_RDONLY | os.O_DIRECTORY)}"
        self._told: tuple[float, str, bool] = (0.0, "/", False)
        self._remembered: dict[str, tuple[float, Names]] = {}

    def follow(self, folder: str) -> None:
        """Do what stdin says, and unmount the file system in the end."""
        for line in sys.stdin:
            seconds, part, lists = line.split()
            self._told = float(seconds), part, bool(int(lists))
            print(line, end="", flush=True)
        unmount(folder)

    def init(self, _path: str) -> None:
        print("mounted", flush=True)

    # -- what is remembered ------------------------------------------------------------------------------------------

    def _names_in(self, folder: str) -> Names:
        now = time.monotonic()
        delay_s, part, _ = self._told
        since, names = self._remembered.get(folder, (-math.inf, {}))
        if now - since >= (delay_s if part in f"{folder}/" else 0.0):
            names = {}
            for name in os.listdir(self._beneath + folder):
                try:
                    names[name] = os.lstat(f"{self._beneath}{folder}/{name}")
                except FileNotFoundError:
                    pass  # It was removed just now.
            self._remembered[folder] = now, names
        return names

    def _place_of(self, path: str) -> tuple[Names, str]:
        folder, name = os.path.split(path)
        return self._names_in(folder), name

    def _note(self, path: str) -> None:
        """Remember a name as it is beneath now."""
        names, name = self._place_of(path)
        try:
            names[name] = os.lstat(self._beneath + path)
        except FileNotFoundError:
            names.pop(name, None)

    def _forget_below(self, path: str) -> None:
        for folder in [one for one in self._remembered if f"{one}/".startswith(f"{path}/")]:
            del self._remembered[folder]

    # -- what is seen ------------------------------------------------------------------------------------------------

    def getattr(self, path: str, _handle: int | None = None) -> dict[str, Any]:
        if path == "/":
            found = os.stat(self._beneath)
        else:
            names, name = self._place_of(path)
            if name not in names:
                raise FileNotFoundError(2, path)
            found = names[name]
        return {one: getattr(found, one) for one in _STAT} | {one: getattr(found, f"{one}_ns") for one in _TIMES}

    def opendir(self, path: str) -> int:
        if self._told[2]:
            self._remembered.pop(path, None)
        return 0

    def readdir(self, path: str, _handle: int) -> list[tuple[str, dict[str, int], int]]:
        # An entry without a number would be left out.
        folders = [(name, {"st_ino": 1, "st_mode": stat.S_IFDIR}, 0) for name in (".", "..")]
        names = self._names_in(path).items()
        return folders + [(name, {"st_ino": one.st_ino, "st_mode": one.st_mode}, 0) for name, one in names]

    def open(self, path: str, flags: int) -> int:
        try:
            return os.open(self._beneath + path, flags)
        finally:
            self._note(path)

    def read(self, _path: str, size: int, offset: int, handle: int) -> bytes:
        return os.pread(handle, size, offset)

    # -- what is done ------------------------------------------------------------------------------------------------

    def create(self, path: str, mode: int, flags: int) -> int:
        handle = os.open(self._beneath + path, flags, mode)
        self._note(path)
        return handle

    def write(self, path: str, data: bytes, offset: int, handle: int) -> int:
        done = os.pwrite(handle, data, offset)
        self._note(path)
        return done

    def truncate(self, path: str, length: int, _handle: int | None = None) -> None:
        os.truncate(self._beneath + path, length)
        self._note(path)

    def release(self, _path: str, handle: int) -> None:
        os.close(handle)

    def mkdir(self, path: str, mode: int) -> None:
        os.mkdir(self._beneath + path, mode)
        self._note(path)

    def link(self, path: str, source: str) -> None:
        os.link(self._beneath + source, self._beneath + path)
        self._note(path)

    def unlink(self, path: str) -> None:
        os.unlink(self._beneath + path)
        self._note(path)

    def rmdir(self, path: str) -> None:
        os.rmdir(self._beneath + path)
        self._forget_below(path)
        self._note(path)

    def rename(self, old: str, new: str) -> None:
        os.rename(self._beneath + old, self._beneath + new)
        for path in (old, new):
            self._forget_below(path)
            self._note(path)

    def utimens(self, path: str, times: tuple[int, int] | None) -> None:
        if times is None or {_NOW, _OMIT} & {*times}:
            os.utime(self._beneath + path)
        else:
            os.utime(self._beneath + path, ns=times)
        self._note(path)


def is_mounted(folder: str | Path) -> bool:
    """Return whether anything is mounted at a path, even if it does not answer any more."""
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    return any(row.split()[4] == str(folder) for row in mounts.splitlines())


def unmount(folder: str | Path) -> None:
    """Unmount all that is mounted at a path, whoever still uses it; a file system then answers nobody any more."""
    while is_mounted(folder):
        subprocess.run(["umount", "--force", "--lazy", folder], check=True)


def main() -> None:
    """Mount it, until stdin is closed."""
    import mfusepy  # What is mounted can be asked for without it.

    folder = sys.argv[1]
    os.umask(0)
    # A mount of its own, from which nothing spreads: whoever has left this namespace of mounts sees what is beneath.
    for how in (["--bind", folder, folder], ["--make-private", folder]):
        subprocess.run(["mount", *how], check=True)
    view = DelayedView(folder)
    follower = threading.Thread(target=view.follow, args=(folder,))
    follower.start()
    nothing = {"attr_timeout": 0, "entry_timeout": 0, "negative_timeout": 0}
    mfusepy.FUSE(view, folder, foreground=True, nothreads=True, use_ino=True, direct_io=True, **nothing)
    follower.join()


if __name__ == "__main__":
    main()
