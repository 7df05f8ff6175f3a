"""Tries what a folder's file system can do for two processes of one machine: `--trial FOLDER`, with `--second FOLDER`.

What agentctl relies on is tried with the functions that rely on it. Between machines less is needed: that files become
visible when they are renamed, which the exchange of a probe shows.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable

from agentctl.adapters import processes
from agentctl.adapters.clock import monotonic
from agentctl.adapters.files import make_folder, sync_folder, to_json, write_all, write_whole
from agentctl.adapters.locks import hold_alive, is_alive_held, locked, try_lock
from agentctl.adapters.opening import open_plain
from agentctl.adapters.paths import FilePath
from agentctl.errors import AgentctlError
from agentctl.runners.program import SECOND, argv_of

#: How long the second process may take for a command, and how long a lock may outlive its holder.
_ANSWER_S, _RELEASE_S = 20.0, 3.0
_RACES, _LINES = 20, 50
_PAUSE_S = 0.02


class _Second:
    """The second process, started when it is first needed: it does what a line says, and answers with one."""

    def __init__(self, folder: FilePath) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> _Second:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        for stream in (self._process.stdin, self._process.stdout) if self._process else ():
            if stream is not None:
                stream.close()

    def begin(self, command: str) -> None:
        """Have it begin with a command."""
        if self._process is None:
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(argv_of(SECOND, str(self._folder)), stdin=pipe, stdout=pipe, bufsize=0)
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n".encode())

    def answer(self) -> str:
        """Return its answer to the last command."""
        assert self._process is not None
        assert self._process.stdout is not None
        if not processes.wait_readable([self._process.stdout.fileno()], _ANSWER_S):
            raise TimeoutError(f"a second process has not come back from it within {_ANSWER_S:g} s")
        answer = self._process.stdout.readline().decode().strip()
        if not answer:
            raise ChildProcessError("a second process failed at it")
        return answer

    def done(self, command: str) -> str:
        """Have it carry a command out, and return its answer."""
        self.begin(command)
        return self.answer()

    def kill(self) -> None:
        """Kill it: what it holds is free from then on."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(_ANSWER_S)


def second(folder: str) -> int:
    """Carry out the commands that come as lines on stdin; its locks are held until it ends."""
    at = FilePath(folder)
    for line in sys.stdin:
        match line.split():
            case ["ready"]:
                answer = "ready"
            case ["alive"]:
                answer = "held" if hold_alive(at / "alive") is not None else "refused"
            case ["lock"]:
                answer = "held" if try_lock(at / "lock") is not None else "refused"
            case ["link"]:
                answer = str(_won(at, "second"))
            case ["append"]:
                _append(at, "second")
                answer = "done"
            case _:
                return 2
        write_all(1, f"{answer}\n".encode())
    return 0


def main(folder: str) -> int:
    """Try the folder, which is made; print what does not work as JSON."""
    write_all(1, to_json({"problems": problems_of(FilePath(folder))}))
    return 0


def problems_of(folder: FilePath, tell: Callable[[str], object] = bool) -> list[str]:
    """Return what does not work in a folder, which is made; nothing where all does.

    Args:
        tell: Called with what is tried next: a file system may never come back from it.
    """
    make_folder(folder)
    found = []
    for what, check in _CHECKS:
        tell(what)
        try:
            problem = _tried(folder, check)
        except (AgentctlError, OSError, ValueError) as error:
            problem = getattr(error, "strerror", None) or str(error)
        if problem:
            found.append(f"{what}: {problem}")
    return found


def _tried(folder: FilePath, check: Callable[[FilePath, _Second], str]) -> str:
    with _Second(folder) as other:
        return check(folder, other)


def _rename(folder: FilePath, other: _Second) -> str:
    file = folder / "renamed"
    write_whole(file, b"first")
    reader = open_plain(file)
    try:
        write_whole(file, b"second")
        if file.read_bytes() != b"second":
            return "the old content is still there"
        return "" if os.pread(reader, 100, 0) == b"first" else "it changes what another process reads at the moment"
    finally:
        os.close(reader)


def _link(folder: FilePath, other: _Second) -> str:
    other.done("ready")  # So that both begin at once.
    other.begin("link")
    won = _won(folder, "first") + int(other.answer())
    return "" if won == _RACES else f"two processes have made {_RACES} names {won} times, and not once each"


def _won(folder: FilePath, mark: str) -> int:
    """Return how often this process has made one of the names by a hard link; it tries each of them twice."""
    own = folder / f"own-{mark}"
    write_whole(own, mark.encode())
    won = 0
    for number in (*range(_RACES), *range(_RACES)):
        with contextlib.suppress(FileExistsError):
            os.link(own, folder / f"link-{number}")
            won += 1
    return won


def _alive(folder: FilePath, other: _Second) -> str:
    file = folder / "alive"
    if is_alive_held(file) or other.done("alive") != "held":
        return "it is held though nobody has taken it"
    if not is_alive_held(file):
        return "a lock of another process is not seen"
    other.kill()
    return "" if _in_time(lambda: not is_alive_held(file)) else "a lock outlives its process"


def _lock(folder: FilePath, other: _Second) -> str:
    if other.done("lock") != "held":
        return "it is held though nobody has taken it"
    taken = try_lock(folder / "lock")
    if taken is not None:
        os.close(taken)
        return "two processes hold it at once"
    other.kill()

    def is_free() -> bool:
        fd = try_lock(folder / "lock")
        if fd is not None:
            os.close(fd)
        return fd is not None

    return "" if _in_time(is_free) else "a lock outlives its process"


def _appends(folder: FilePath, other: _Second) -> str:
    other.done("ready")
    other.begin("append")
    _append(folder, "first")
    other.answer()
    lines = (folder / "log").read_bytes().decode(errors="replace").splitlines()
    wanted = sorted(f"{mark} {number}" for mark in ("first", "second") for number in range(_LINES))
    return "" if sorted(lines) == wanted else f"of {2 * _LINES} lines of two processes, some are torn or missing"


def _append(folder: FilePath, mark: str) -> None:
    for number in range(_LINES):
        with locked(folder / "log.lock"):
            fd = open_plain(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            try:
                write_all(fd, f"{mark} {number}\n".encode())
            finally:
                os.close(fd)


def _fifo(folder: FilePath, other: _Second) -> str:
    file = folder / "fifo"
    os.mkfifo(file, 0o600)
    fd = os.open(file, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        write_all(fd, b"!")
        return "" if os.read(fd, 10) == b"!" else "what is written does not come out"
    finally:
        os.close(fd)


def _durable(folder: FilePath, other: _Second) -> str:
    file = folder / "renamed"
    sync_folder(folder)
    before = os.stat(file).st_mtime_ns
    os.utime(file, ns=(before + 10**9, before + 10**9))
    return "" if os.stat(file).st_mtime_ns != before else "the time of a file cannot be changed"


#: What is tried, as it is called in a problem.
_CHECKS: tuple[tuple[str, Callable[[FilePath, _Second], str]], ...] = (
    ("a rename over a file", _rename),
    ("a hard link", _link),
    ("a liveness lock", _alive),
    ("a lock (flock)", _lock),
    ("appends under a lock", _appends),
    ("a FIFO", _fifo),
    ("flushing, and the time of a file", _durable),
)


def _in_time(condition: Callable[[], bool]) -> bool:
    until = monotonic() + _RELEASE_S
    while not condition():
        if monotonic() >= until:
            return False
        time.sleep(_PAUSE_S)
    return True
