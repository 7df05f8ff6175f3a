"""Carries out at the head the commands of a worker on a node: each below its stand-in, and so as the worker's own.

What a worker may do follows from the processes above it (`operations.where.lineage`): a command from a node may do
exactly what it might do if the worker ran here.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys

from agentctl.adapters.clock import monotonic
from agentctl.adapters.files import make_folder, read_known, to_json, write_whole
from agentctl.adapters.opening import OddFile, open_plain
from agentctl.adapters.taskdir import LaunchDir, WorkerDir, names_in
from agentctl.domain.names import is_name
from agentctl.errors import AgentctlError
from agentctl.lean import TYPE_CHECKING, Any
from agentctl.worker_programs.on_node.calls.called_files import GONE_AFTER_S, OF_JOBS, CallFiles

if TYPE_CHECKING:
    from typing import IO

_MOST_AT_ONCE, _MOST_CALLS = 64, 100_000
_PIECE = 1 << 16
_CANNOT = 126
#: How long after something was passed on the next looks are close.
_LIVELY_S = 1.0


class CalledCommands:
    """The commands of one worker."""

    def __init__(self, worker: WorkerDir, launch: LaunchDir) -> None:
        self._worker, self._launch = worker, launch
        self._running: dict[str, _Called] = {}
        #: The folder of a call is there already, and not yet what is to be done.
        self._is_awaited = False
        self._known: set[str] = set(names_in(launch.inbound.replies, _MOST_CALLS))
        for name in self._known:
            self._break_off(name)

    @property
    def is_any(self) -> bool:
        """Whether a command is being carried out, or is about to be."""
        return self._is_awaited or bool(self._running)

    @property
    def is_lively(self) -> bool:
        """Whether a command is being carried out in which something happens."""
        return any(called.is_lively for called in self._running.values())

    def step(self) -> bool:
        """Begin new commands, and pass on what has come for the others; return whether there was anything."""
        news = False
        for name in self._new_ones():
            news = True
            self._begin(name)
        for name, called in list(self._running.items()):
            if called.step():
                del self._running[name]
                news = True
        return news

    def _break_off(self, name: str) -> None:
        """End the call of a command that another stand-in had begun: it was ended with that one."""
        files = CallFiles(self._launch.calls, self._launch.inbound.replies, name)
        if is_name(name) and not files.ended.exists():
            make_folder(files.reply)
            _refuse(files, "it was broken off at the head; the list of workers shows whether it was carried out")

    def _new_ones(self) -> list[str]:
        """Return the calls that are to begin now, oldest first; forget those whose callers have had their answers."""
        room = _MOST_AT_ONCE - len(self._running)
        names = set(names_in(self._launch.calls, _MOST_CALLS))
        for name in self._known - names - self._running.keys():
            shutil.rmtree(self._launch.inbound.replies / name, ignore_errors=True)
            self._known.discard(name)
        found = [name for name in names - self._known if is_name(name)]
        whole = sorted(name for name in found if self._is_whole(name))
        self._is_awaited = len(whole) > room or len(whole) < len(found)
        return whole[: max(0, room)]

    def _is_whole(self, name: str) -> bool:
        folder = self._launch.calls / name
        names_in(folder, 1)  # Over NFS: a name that was missing at the last look is looked up again.
        return (folder / "call.json").exists()

    def _begin(self, name: str) -> None:
        files = CallFiles(self._launch.calls, self._launch.inbound.replies, name)
        self._known.add(name)
        make_folder(files.reply)
        order = read_known(files.order)
        with contextlib.suppress(OSError):
            os.unlink(files.order)  # It has values of the environment.
        try:
            self._running[name] = _Called(files, order)
        except (OSError, TypeError, ValueError) as error:
            _refuse(files, f"it cannot be carried out at the head: {error}")
        except KeyError:
            _refuse(files, "it cannot be carried out at the head: its order is damaged")

    def close(self) -> None:
        """Stop what is still being carried out: nobody waits for it any more."""
        for called in self._running.values():
            called.kill()
        self._running.clear()


class _Called:
    """One command, with its input."""

    def __init__(self, files: CallFiles, order: dict[str, Any]) -> None:
        import subprocess  # Most workers have nothing carried out here.

        self._files = files
        argv, cwd = [str(word) for word in order["argv"]], str(order["cwd"])
        output, errors = (open_plain(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND) for path in files.outputs)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "agentctl", *argv], stdin=subprocess.PIPE, stdout=output, stderr=errors,
                cwd=cwd, env=_environ(order), bufsize=0, process_group=0,
            )  # fmt: skip
        finally:
            os.close(output)
            os.close(errors)
        assert self._process.stdin is not None
        self._input: IO[bytes] | None = self._process.stdin
        os.set_blocking(self._input.fileno(), False)
        self._passed = 0
        self._lively_until = monotonic() + _LIVELY_S
        #: When its caller gave a sign of life last: the time in the file, and when that was seen here.
        self._alive: tuple[int, float] = (0, monotonic())

    @property
    def is_lively(self) -> bool:
        """Whether something was passed on just now."""
        return monotonic() < self._lively_until

    def step(self) -> bool:
        """Pass on what has come; return whether the command has ended, and its end is on disk."""
        names_in(self._files.folder, 1)  # As above.
        if self._input is not None and self._pass_input():
            self._lively_until = monotonic() + _LIVELY_S
        self._pass_signal()
        self._look_for_caller()
        code = self._process.poll()
        if code is None:
            return False
        self._close_input()
        write_whole(self._files.ended, to_json({"code": code}), durable=False)
        return True

    def _pass_input(self) -> bool:
        assert self._input is not None
        is_whole = self._files.input_end.exists()  # Before the look: nothing comes behind it.
        data = b""
        with contextlib.suppress(FileNotFoundError, OddFile):
            fd = open_plain(self._files.input)
            try:
                data = os.pread(fd, _PIECE, self._passed)
            finally:
                os.close(fd)
        try:
            if data:
                self._passed += os.write(self._input.fileno(), data)
            elif is_whole:
                self._close_input()
        except BlockingIOError:
            return False
        except OSError:  # It reads no more.
            self._close_input()
        return bool(data)

    def _close_input(self) -> None:
        if self._input is not None:
            with contextlib.suppress(OSError):
                self._input.close()
            self._input = None

    def _pass_signal(self) -> None:
        with contextlib.suppress(OSError, ValueError, AgentctlError):
            number = int(self._files.signal.read_text("ascii"))
            os.unlink(self._files.signal)
            if number in (signal.SIGINT, signal.SIGTERM):
                self._process.send_signal(number)

    def _look_for_caller(self) -> None:
        """Interrupt a command for which nobody waits any more."""
        with contextlib.suppress(OSError):
            fd = open_plain(self._files.alive)  # Over NFS, what a stat says may be as old as this limit.
            try:
                changed = os.fstat(fd).st_mtime_ns
            finally:
                os.close(fd)
            if changed != self._alive[0]:
                self._alive = changed, monotonic()
        if monotonic() - self._alive[1] > GONE_AFTER_S:
            self._process.send_signal(signal.SIGINT)
            self._alive = self._alive[0], monotonic()

    def kill(self) -> None:
        """Kill it, with what it has started."""
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._close_input()
        self._process.poll()


def _refuse(files: CallFiles, why: str) -> None:
    write_whole(files.outputs[1], os.fsencode(f"error: {why}\n"), durable=False)
    write_whole(files.ended, to_json({"code": _CANNOT}), durable=False)


def _environ(order: dict[str, Any]) -> dict[str, str]:
    """Return the environment of a command: that of the worker here, with what differs where it was called."""
    given, unset = dict(order.get("set") or {}), set(order.get("unset") or ())
    environ = {name: value for name, value in os.environ.items() if name not in unset or name.startswith(OF_JOBS)}
    return environ | {str(name): str(value) for name, value in given.items() if not str(name).startswith(OF_JOBS)}
