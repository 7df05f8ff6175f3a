"""How a worker comes to life: forked behind a gate that opens once its identity is on disk."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
from dataclasses import dataclass
from typing import NoReturn

from agentctl.adapters.taskdir import AgentDir
from agentctl.supervision.spec import WorkerSpec

_READY = b"r"
_OPEN = b"o"
_RESET = (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGXFSZ)


@dataclass(slots=True)
class Unborn:
    """A forked child behind its gate. End of file at the gate, also by this process's death: it exits unexecuted."""

    pid: int
    gate: int
    report: int

    def open_gate(self) -> str | None:
        """Let it execute its program; return why it could not, None when it did."""
        with contextlib.suppress(BrokenPipeError):  # Killed at the gate: the report is empty, its exit tells.
            os.write(self.gate, _OPEN)
        os.close(self.gate)
        try:
            return _read_all(self.report) or None
        finally:
            os.close(self.report)

    def abandon(self) -> None:
        """Let it go unexecuted."""
        os.close(self.gate)
        os.close(self.report)
        os.waitpid(self.pid, 0)


class BirthError(Exception):
    """The child could not be made ready; it is gone."""


def fork_worker(agent: AgentDir, spec: WorkerSpec, environ: dict[bytes, bytes]) -> Unborn:
    """Fork the worker: own session, own folder, its output appended to files, waiting at the gate.

    Raises:
        BirthError: It has no folder to run in, or its files cannot be opened.
        OSError: The system refuses another process or descriptor.
    """
    gate_read, gate_write = os.pipe()
    report_read, report_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(gate_write)
        os.close(report_read)
        _live(agent, spec, environ, gate_read, report_write)
    os.close(gate_read)
    os.close(report_write)
    unborn = Unborn(pid, gate_write, report_read)
    first = os.read(report_read, 1)
    if first != _READY:
        problem = (first + _read_all(report_read).encode()).decode(errors="replace")
        unborn.abandon()
        raise BirthError(problem or "it was killed before it was executed")
    return unborn


def _read_all(fd: int) -> str:
    data = b""
    while chunk := os.read(fd, 4096):
        data += chunk
    return data.decode(errors="replace")


def _live(agent: AgentDir, spec: WorkerSpec, environ: dict[bytes, bytes], gate: int, report: int) -> NoReturn:
    """Be the child: nothing here may return or raise."""
    try:
        os.setsid()
        _open_output(agent)
        signal.set_wakeup_fd(-1)
        for number in _RESET:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.umask(spec.umask)
        os.chdir(spec.cwd)
        os.write(report, _READY)
        if os.read(gate, 1) != _OPEN:
            os._exit(125)
        os.execvpe(os.fsencode(spec.argv[0]), [os.fsencode(part) for part in spec.argv], environ)
    except OSError as error:
        where = error.filename or spec.argv[0]
        where = os.fsdecode(where) if isinstance(where, bytes) else str(where)
        hint = " (has it a #! line?)" if error.errno == errno.ENOEXEC else ""
        with contextlib.suppress(OSError):
            os.write(report, f"{where}: {os.strerror(error.errno or 0)}{hint}".encode())
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.write(report, repr(error).encode())
    finally:
        os._exit(127)


def _open_output(agent: AgentDir) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    for target, path in ((1, agent.stdout), (2, agent.stderr)):
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(fd, target)
        if fd > 2:
            os.close(fd)
    if null > 2:
        os.close(null)
