"""Calls a command at the head for a worker on a node: input, output and Ctrl-C as if it ran here.

Its input goes there as it comes, its output comes back as it is printed; Ctrl-C interrupts it there.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import threading

from agentctl.adapters.clock import monotonic
from agentctl.adapters.files import make_folder, read_known, storage_errors, to_json, write_all, write_whole
from agentctl.adapters.opening import OddFile, open_plain
from agentctl.adapters.taskdir import LaunchDir, names_in
from agentctl.errors import AgentctlError
from agentctl.worker_programs.on_node.calls.called_files import ALIVE_EVERY_S, LAUNCH_VARIABLE, OF_JOBS, CallFiles

_FIRST_LOOK_S, _LONGEST_LOOK_S = 0.02, 0.25
_PIECE = 1 << 16


def call_head(argv: list[str]) -> int:
    """Have a command carried out at the head; return its exit code.

    Raises:
        StorageError: The call cannot be written, as from within a sandbox.
    """
    launch = LaunchDir(os.environ[LAUNCH_VARIABLE])
    files = CallFiles(launch.calls, launch.inbound.replies, f"{os.getpid()}-{os.urandom(6).hex()}")
    with storage_errors(files.folder, "write"):
        make_folder(files.folder)
    write_whole(files.alive, b"", durable=False)
    write_whole(files.order, to_json(_order(argv)), durable=False)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda got, _frame: _pass_signal(files, got))
    if not os.isatty(0):
        threading.Thread(target=_copy_input, args=(files,), daemon=True).start()
    try:
        return _await(files)
    finally:
        shutil.rmtree(files.folder, ignore_errors=True)  # The head removes its reply then.


def _order(argv: list[str]) -> dict[str, object]:
    try:
        cwd = os.getcwd()
    except FileNotFoundError:
        raise AgentctlError("the working folder was removed", hint="cd to one that exists") from None
    environ = {name: value for name, value in os.environ.items() if not name.startswith(OF_JOBS)}
    return {"argv": argv, "cwd": cwd, "set": environ, "unset": []}


def _pass_signal(files: CallFiles, number: int) -> None:
    with contextlib.suppress(AgentctlError, OSError):
        write_whole(files.signal, str(int(number)).encode(), durable=False)


def _copy_input(files: CallFiles) -> None:
    """Copy the input of this process as it comes, and say when it is whole."""
    with contextlib.suppress(OSError, AgentctlError):
        fd = os.open(files.input, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            while data := os.read(0, _PIECE):
                write_all(fd, data)
        finally:
            os.close(fd)
            write_whole(files.input_end, b"", durable=False)


def _await(files: CallFiles) -> int:
    """Print what the command prints, until its end is there and all of it was printed."""
    passed, pause, beat = [0, 0], _FIRST_LOOK_S, monotonic() + ALIVE_EVERY_S
    while True:
        for folder in (files.reply.parent, files.reply):
            names_in(folder, 1)  # Over NFS: a name that was missing at the last look is looked up again.
        ended = read_known(files.ended)  # Before the look at the output: nothing comes behind the end.
        news = [_pass_output(files, stream, passed) for stream in (0, 1)]
        if not any(news):
            if ended:
                return _code_of(ended.get("code"))
            select.select((), (), (), pause)
            pause = min(pause * 1.5, _LONGEST_LOOK_S)
        else:
            pause = _FIRST_LOOK_S
        if monotonic() >= beat:
            beat = monotonic() + ALIVE_EVERY_S
            with contextlib.suppress(OSError):
                os.utime(files.alive)


def _pass_output(files: CallFiles, stream: int, passed: list[int]) -> bool:
    data = b""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError, OddFile):
        fd = open_plain(files.outputs[stream])
        try:
            data = os.pread(fd, _PIECE, passed[stream])
        finally:
            os.close(fd)
    if data:
        write_all(stream + 1, data)
        passed[stream] += len(data)
    return bool(data)


def _code_of(code: object) -> int:
    """Return the exit code; that of a command that a signal has ended as a shell has it."""
    number = code if isinstance(code, int) else 1
    return 128 - number if number < 0 else number
