"""Starts a worker's process: forks it behind a gate, which opens once the worker's identity is on disk."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Mapping

from agentctl.adapters.opening import open_plain
from agentctl.adapters.signals import signal
from agentctl.adapters.taskdir import WorkerDir
from agentctl.lean import NamedTuple, NoReturn
from agentctl.supervision.worker.spec import WorkerSpec, with_moved_programs

_READY = b"r"
_OPEN = b"o"


class Unborn(NamedTuple):
    """A forked child at its gate. On end of file there, even by this process's death, it exits without executing."""

    pid: int
    gate: int
    report: int

    def open_gate(self) -> str | None:
        """Let the child execute its program; return why it could not, or None if it did."""
        with contextlib.suppress(BrokenPipeError):  # Killed at the gate: its report is empty, its exit says so.
            os.write(self.gate, _OPEN)
        os.close(self.gate)
        try:
            return _read_all(self.report) or None
        finally:
            os.close(self.report)

    def abandon(self) -> None:
        """Make the child exit without executing its program."""
        os.close(self.gate)
        os.close(self.report)
        os.waitpid(self.pid, 0)


class BirthError(Exception):
    """The child could not be prepared, and is gone."""


def fork_worker(worker: WorkerDir, spec: WorkerSpec, environ: dict[bytes, bytes]) -> Unborn:
    """Fork the worker: it gets its own session and folder, appends its output to files, and waits at the gate.

    Everything possible is done before the fork, because every page that the child touches is copied.

    Raises:
        BirthError: The worker has no folder to run in, or its program does not exist.
        OSError: Its output files cannot be opened, or the system refuses another process or descriptor.
    """
    words = spec.argv if spec.order is None else with_moved_programs(spec.argv)
    program, argv = _program_of(spec, environ), list(map(os.fsencode, words))
    gate_read, gate_write = os.pipe()
    report_read, report_write = os.pipe()
    outputs = _open_outputs(worker)
    pid = os.fork()
    if pid == 0:
        os.close(gate_write)
        _run_child(spec, program, argv, environ, outputs, gate_read, report_write)
    for fd in (gate_read, report_write, *outputs):
        os.close(fd)
    unborn = Unborn(pid, gate_write, report_read)
    first = os.read(report_read, 1)
    if first != _READY:
        problem = (first + _read_all(report_read).encode()).decode(errors="replace")
        unborn.abandon()
        raise BirthError(problem or "it was killed before it was executed")
    return unborn


def _program_of(spec: WorkerSpec, environ: Mapping[bytes, bytes]) -> bytes:
    """Return the program's path: a relative path starts at the worker's folder, a bare name is looked up in PATH."""
    name = os.fsencode(spec.argv[0])
    if b"/" in name:
        return name
    cwd = os.fsencode(spec.cwd)
    for folder in environ.get(b"PATH", os.fsencode(os.defpath)).split(b":"):
        path = (b"" if folder.startswith(b"/") else cwd + b"/") + folder + b"/" + name
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    raise BirthError(f"there is no program {spec.argv[0]!r} in PATH")


def _open_outputs(worker: WorkerDir) -> tuple[int, int, int]:
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    return (
        os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC),
        open_plain(worker.stdout, append),
        open_plain(worker.stderr, append),
    )


def _read_all(fd: int) -> str:
    data = b""
    while chunk := os.read(fd, 4096):
        data += chunk
    return data.decode(errors="replace")


def _run_child(
    spec: WorkerSpec, program: bytes, argv: list[bytes], environ: dict[bytes, bytes],
    outputs: tuple[int, int, int], gate: int, report: int,
) -> NoReturn:  # fmt: skip
    """Run as the forked child: nothing here may return or raise."""
    try:
        os.setsid()
        for target, fd in enumerate(outputs):
            os.dup2(fd, target)
        os.umask(spec.umask)
        if spec.placement is not None:  # What stands in for it here must not be interrupted before it can act on that.
            signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
        _enter(spec)
        os.write(report, _READY)
        if os.read(gate, 1) != _OPEN:
            os._exit(125)
        os.execve(program, argv, environ)
    except OSError as error:
        where = os.fsdecode(error.filename or program)
        hint = " (does it have a #! line?)" if error.errno == errno.ENOEXEC else ""
        with contextlib.suppress(OSError):
            os.write(report, f"{where}: {os.strerror(error.errno or 0)}{hint}".encode(errors="replace"))
    except BaseException as error:  # noqa: BLE001 - the parent raises what is reported here
        problem = str(error) if isinstance(error, BirthError) else repr(error)
        with contextlib.suppress(OSError):
            os.write(report, problem.encode(errors="replace"))
    finally:
        os._exit(127)


def _enter(spec: WorkerSpec) -> None:
    """Change to the worker's folder; the kernel says where that led, even if the path is replaced meanwhile."""
    os.chdir(spec.cwd)
    found = os.getcwd() if spec.keeps_its_folder else spec.cwd
    if found != spec.cwd:
        raise BirthError(f"{spec.cwd} now leads to {found}: a folder was replaced by a link")
