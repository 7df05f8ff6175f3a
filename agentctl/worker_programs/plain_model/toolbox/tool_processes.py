"""Runs the processes of tools: a shell command, bounded in time and output; a search, bounded in time."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

from agentctl.adapters.descent import child_processes, walk
from agentctl.adapters.files import make_folder, to_json, write_all
from agentctl.adapters.opening import open_plain
from agentctl.adapters.processes import read_stat
from agentctl.encoding import OPTIONS
from agentctl.lean import NamedTuple
from agentctl.worker_programs.plain_model.break_off import BreakOff
from agentctl.worker_programs.plain_model.model.provider_key import Mask
from agentctl.worker_programs.plain_model.toolbox.tool_errors import ToolError

#: The most output that a model gets of a command: the beginning and the end of a longer one.
_SHOWN = 24_000
#: The most that is kept on disk of one command.
_KEPT = 64 << 20
_CHUNK = 1 << 16
#: How long a stopped command has between SIGTERM and SIGKILL; how long the output of one that has ended is waited for.
_GRACE_S, _DRAIN_S = 1.0, 0.2
_LOOK_S, _TURN_S = 0.1, 0.02
_SEARCH_S, _KILL_S = 15.0, 3.0
_SEARCHES = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "search_process.py")


class Ran(NamedTuple):
    """How a command ended: its exit code (-n for signal n), or that it was stopped."""

    code: int
    output: str
    timed_out: bool = False


class Output:
    """The output of a command: its beginning and its end in memory, the whole in a file once it is too long."""

    def __init__(self, path: str, mask: Mask) -> None:
        self._path, self._mask = path, mask
        self._head, self._tail = bytearray(), bytearray()
        self._size = 0
        self._fd: int | None = None
        self._kept = 0
        self._is_whole = True
        self._rest = b""

    def take(self, chunk: bytes) -> None:
        """Take a piece, without the keys in it."""
        data = self._mask.data(self._rest + chunk)
        keep = min(self._mask.overlap, len(data))
        self._rest = data[len(data) - keep :]
        self._put(data[: len(data) - keep])

    def _put(self, data: bytes) -> None:
        if self._size <= _SHOWN < self._size + len(data):
            self._open()
        self._size += len(data)
        self._keep(data)
        room = _SHOWN - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room > 0 else data
        del self._tail[: max(0, len(self._tail) - _SHOWN // 2)]

    def _keep(self, data: bytes) -> None:
        if self._fd is None or not self._is_whole:
            return
        room = _KEPT - self._kept
        self._kept += len(data)
        try:
            write_all(self._fd, data[:room])
        except OSError:
            room = 0  # A full disk.
        self._is_whole = len(data) <= room

    def _open(self) -> None:
        with contextlib.suppress(OSError):
            make_folder(os.path.dirname(self._path))
            self._fd = open_plain(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            self._keep(bytes(self._head))

    def end(self) -> str:
        """Close the file; return the output as the model gets it."""
        self._put(self._rest)
        self._rest = b""
        if self._fd is not None:
            os.close(self._fd)
        head, tail = bytes(self._head), bytes(self._tail)
        if not tail:
            return head.decode("utf-8", "replace")
        half = _SHOWN // 2
        kept = "the whole" if self._is_whole else "more of the beginning"
        where = f", {kept} is in {self._path}" if self._fd is not None else ""
        cut = f"\n[{self._size - 2 * half} bytes are left out here{where}]\n"
        return head[:half].decode("utf-8", "replace") + cut + (head + tail)[-half:].decode("utf-8", "replace")


def run_shell(command: str, folder: str, seconds: float, breaker: BreakOff, output: Output) -> Ran:
    """Run a line of shell, with no input; what it leaves in the background goes on.

    Raises:
        ToolError: It could not be started.
        Interrupted: It was broken off, and its tree stopped.
    """
    reads, writes = os.pipe2(os.O_CLOEXEC) if hasattr(os, "pipe2") else os.pipe()
    try:
        process = subprocess.Popen(
            [_shell(), "-c", command], stdin=subprocess.DEVNULL, stdout=writes, stderr=writes, cwd=folder,
            process_group=0,
        )  # fmt: skip
    except (OSError, ValueError) as error:
        os.close(reads)
        raise ToolError(f"the command could not be started: {error}") from error
    finally:
        os.close(writes)
    try:
        with breaker.stopping(lambda: _signal_group(process, signal.SIGTERM)):
            is_over = _follow(process, reads, output, time.monotonic() + seconds, breaker)
            if not is_over:
                _stop_tree(process)
                _drain(reads, output)
    finally:
        os.close(reads)
        said = output.end()
    code = process.wait()
    breaker.check()
    return Ran(code, said, timed_out=not is_over)


def _shell() -> str:
    return next(
        (path for path in ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash") if os.path.exists(path)), "/bin/sh"
    )


def _follow(process: subprocess.Popen[bytes], fd: int, output: Output, until: float, breaker: BreakOff) -> bool:
    """Take the output until the command has ended; False where it has to be stopped."""
    os.set_blocking(fd, False)
    with selectors.DefaultSelector() as waiting:
        waiting.register(fd, selectors.EVENT_READ)
        is_open = True
        while not _has_ended(process):
            left = until - time.monotonic()
            if left <= 0 or breaker.is_broken:
                return False
            if not is_open:
                time.sleep(min(_LOOK_S, left))
            elif waiting.select(min(_LOOK_S, left)) and not _read(fd, output):
                waiting.unregister(fd)
                is_open = False
    _drain(fd, output)
    return True


def _drain(fd: int, output: Output) -> None:
    """Take what is still in the pipe; somebody in the background may hold it open."""
    until = time.monotonic() + _DRAIN_S
    with selectors.DefaultSelector() as waiting:
        waiting.register(fd, selectors.EVENT_READ)
        while waiting.select(0) and time.monotonic() < until:
            if not _read(fd, output):
                return


def _read(fd: int, output: Output) -> bool:
    try:
        chunk = os.read(fd, _CHUNK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    output.take(chunk)
    return bool(chunk)


def _stop_tree(process: subprocess.Popen[bytes]) -> None:
    """End a command with all that it has started, also what has left its group: politely first."""
    below = _below(process)
    for number in (signal.SIGTERM, signal.SIGKILL):
        _signal_group(process, number)
        for pid, start in below.items():
            _signal_one(pid, start, number)
        until = time.monotonic() + _GRACE_S
        while not _has_ended(process) and time.monotonic() < until:
            time.sleep(_TURN_S)


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Return whether it has ended, without reaping it: until then no other group has the number of its own."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _below(process: subprocess.Popen[bytes]) -> dict[int, int]:
    """Return pid -> start of the processes below one."""
    stats = {pid: read_stat(pid) for pid in walk(child_processes(process.pid))}
    return {pid: stat.start for pid, stat in stats.items() if stat is not None}


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal to the group of a process that is not reaped yet."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _signal_one(pid: int, start: int, number: int) -> None:
    """Send a signal to a process, unless another one has got its pid."""
    stat = read_stat(pid)
    if stat is not None and stat.start == start:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def look(order: Mapping[str, Any], folder: int, breaker: BreakOff) -> str:
    """Find or search files below an open folder; return what was found, one a line.

    Raises:
        Interrupted: It was broken off.
    """
    process = subprocess.Popen(
        [sys.executable, *OPTIONS, "-I", "-S", _SEARCHES], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, pass_fds=(folder,), process_group=0,
    )  # fmt: skip
    with process, breaker.stopping(process.kill):
        data = to_json({**order, "fd": folder, "seconds": _SEARCH_S})
        try:
            said, _ = process.communicate(data, timeout=_SEARCH_S + _KILL_S)
        except subprocess.TimeoutExpired:
            process.kill()
            said = process.communicate()[0] + b"[it took too long, and was stopped: use a simpler pattern]\n"
        else:
            if code := process.returncode:
                how = f"signal {-code}" if code < 0 else f"exit code {code}"
                said += f"[the search was broken off ({how}): there may be more than this]\n".encode()
    breaker.check()
    return said.decode("utf-8", "replace").rstrip("\n")
