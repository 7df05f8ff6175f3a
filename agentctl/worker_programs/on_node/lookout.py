"""One stand-in looks at the heartbeats for all that rest: its caches are warm, theirs would be cold.

A look runs for 15 us, and takes ten times as long and more in a process that was asleep: the rest is code and data
that come back into the processor's cache. So those that have long been calm leave a note, and look only now and then
themselves. All that they hear from the lookout is a hint: one that is stopped or hangs makes them see news later, and
costs nothing else. Each file system has a lookout of its own, since one that does not answer stops whoever looks at it.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading

from agentctl.adapters.locks import try_lock
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import LaunchDir
from agentctl.errors import AgentctlError
from agentctl.lean import NamedTuple
from agentctl.supervision.worker.control import WAKE
from agentctl.supervision.worker.environment import store_folder

#: The pause between two looks. Half of it is the median time from the end of a calm worker until the head sees it.
PAUSE_S = 1.5
#: A file system that does not answer must not hold up a process that is to end.
_HAND_OVER_S = 1.0
_LOOK = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_NOTE = re.compile(r"[0-9a-f]{16}-([0-9]+)-([1-9][0-9]{0,8})")


def look_at(path: str | os.PathLike[str]) -> os.stat_result:
    """Return the state of a heartbeat; it is opened, since that asks the server of NFS.

    What a stat says there may be half a minute old.
    """
    fd = os.open(path, _LOOK)
    try:
        return os.fstat(fd)
    finally:
        os.close(fd)


class RestingNote:
    """The note of one stand-in that it rests."""

    def __init__(self, launch: LaunchDir) -> None:
        self._launch = launch
        self._folder: FilePath | None = None
        self._path = ""
        self._is_relieved = threading.Event()
        self._lookout: threading.Thread | None = None

    def leave(self, length: int) -> bool:
        """Ask to be woken as soon as the heartbeat is no longer of this length; return whether somebody looks.

        That is a thread of this process, if nobody else does it.
        """
        with contextlib.suppress(AgentctlError, OSError):
            if self._folder is None:
                self._folder = store_folder() / f"resting-{os.stat(self._launch.path).st_dev:x}"
            if not self._path:
                self._folder.mkdir(exist_ok=True)
                path = f"{self._folder}/{self._launch.id}-{length}-{os.getpid()}"
                with contextlib.suppress(FileExistsError):
                    os.symlink(self._launch.heartbeat, path)
                self._path = path
            lock = try_lock(_lock_of(self._folder))
            return lock is None or self._becomes_lookout(self._folder, lock)
        return False

    def _becomes_lookout(self, folder: FilePath, lock: int) -> bool:
        thread = threading.Thread(target=_look_out, args=(folder, lock, self._is_relieved), daemon=True)
        try:
            thread.start()
        except RuntimeError:  # There may be no more threads (RLIMIT_NPROC).
            os.close(lock)
            return False
        self._lookout = thread
        return True

    def take_back(self) -> None:
        """Remove the note."""
        if self._path:
            with contextlib.suppress(OSError):
                os.unlink(self._path)
            self._path = ""

    def hand_over(self) -> None:
        """Leave the lookout to somebody else, before this process ends."""
        if self._lookout is not None:
            self._is_relieved.set()
            self._lookout.join(_HAND_OVER_S)


class _Resting(NamedTuple):
    """Who rests, as the note says."""

    heartbeat: str
    length: int
    pid: int


def _lock_of(folder: FilePath) -> str:
    return f"{folder}.lock"


def _look_out(folder: FilePath, lock: int | None, is_relieved: threading.Event) -> None:
    """Look at the heartbeats of all that rest, and wake those with news, until nobody rests."""
    with contextlib.suppress(AgentctlError, OSError):  # Somebody has removed the folder: each looks for itself.
        while lock is not None:
            try:
                _look_while_any_rests(folder, is_relieved)
            finally:
                os.close(lock)
            if is_relieved.is_set():
                _wake_successor(folder)
                return
            # Whoever has left a note just now may have found the lock taken.
            lock = try_lock(_lock_of(folder)) if os.listdir(folder) else None


def _look_while_any_rests(folder: FilePath, is_relieved: threading.Event) -> None:
    resting: dict[str, _Resting | None] = {}
    while names := os.listdir(folder):
        resting = {name: resting[name] if name in resting else _read(folder, name) for name in names}
        for name, one in resting.items():
            if one is None or _has_news(one):
                _wake(folder, name, one)
        if is_relieved.wait(PAUSE_S):
            return


def _wake_successor(folder: FilePath) -> None:
    for name in os.listdir(folder):
        one = _read(folder, name)
        _wake(folder, name, one)
        if one is not None:
            return


def _read(folder: FilePath, name: str) -> _Resting | None:
    """Return what a note says; None if it is not one, or nobody reads the answer."""
    found = _NOTE.fullmatch(name)
    if found is None:
        return None
    with contextlib.suppress(OSError):  # It has been taken back.
        one = _Resting(os.readlink(folder / name), int(found[1]), int(found[2]))
        return one if _is_sent(one.pid, 0) else None
    return None


def _has_news(one: _Resting) -> bool:
    try:
        return look_at(one.heartbeat).st_size != one.length
    except OSError:  # It looks itself what has happened.
        return True


def _wake(folder: FilePath, name: str, one: _Resting | None) -> None:
    with contextlib.suppress(OSError):
        os.unlink(folder / name)
    if one is not None:
        _is_sent(one.pid, WAKE)


def _is_sent(pid: int, number: int) -> bool:
    """Send a signal to a process by its number alone: one that has taken over the number ignores this signal."""
    try:
        os.kill(pid, number)
    except OSError:
        return False
    return True
