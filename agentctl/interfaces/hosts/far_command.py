"""Carries out the command that another host has ordered, in a process of its own, on streams that lead there."""

from __future__ import annotations

import fcntl
import io
import os
import select
import signal
import struct
import sys
import termios
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress

from agentctl.errors import BrokenOff, Declined, NotFound, Refused
from agentctl.interfaces.hosts.far_order import FarOrder
from agentctl.interfaces.hosts.printed import ask_by
from agentctl.lean import NamedTuple, NoReturn
from agentctl.operations.where.calling import FROM_WORKER

#: Runs a command line, after a function that may fail as the command itself may.
Main = Callable[[list[str], Callable[[], None]], int]

#: What the command says to the process that started it, and the answers.
WANTS, PRINT, YES, NO = b"r", b"s", b"y", b"n"
#: Reads its input by itself, from the beginning.
EAGER = frozenset({"mcp"})
#: What only a person decides: here no process tree shows that a worker calls.
_OF_PERSONS = frozenset({"trust", "notify"})
#: Gives out what counts as given once it is printed: it waits for that, and can be told to stop.
_DELIVERS = frozenset({"wait-any"})
_PIECE = 1 << 16


class Streams(NamedTuple):
    """The descriptors on which the command runs: for its streams, and to speak with the process that started it."""

    given: int
    out: int
    err: int
    asks: int
    answers: int


def delivers(order: FarOrder) -> bool:
    """Return whether a command gives something out."""
    return command_of(order) in _DELIVERS


def command_of(order: FarOrder) -> str:
    """Return the name of the command."""
    return next(iter(order.argv), "")


def carry_out_order(order: FarOrder, streams: Streams, main: Main) -> NoReturn:
    """Carry out the command and leave."""
    code = 1
    try:
        _take_place(order, streams)
        with _stopping_by(order, streams):
            code = main(order.argv, lambda: _prepare(order))
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
    finally:
        os._exit(code)


def _prepare(order: FarOrder) -> None:
    """Let Ctrl-C in, and go to the folder that is ordered.

    Raises:
        KeyboardInterrupt: It came already.
        Refused: A worker has ordered what only a person decides.
        NotFound: There is no such folder.
    """
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    if FROM_WORKER in order.environ and command_of(order) in _OF_PERSONS:
        message = f"a worker may not call {command_of(order)} on another host"
        raise Refused(message, hint="only a person can, in their own terminal")
    folder = order.folder
    if folder is None:
        return
    try:
        os.chdir(os.path.expanduser(folder))
    except OSError as error:
        hint = "correct `folder` of this host in config.yaml"
        raise NotFound(f"cannot go to {folder}: {error.strerror}", hint=hint) from error


def _stopping_by(order: FarOrder, streams: Streams) -> AbstractContextManager[None]:
    """Return a context in which a wait ends once there is an answer to a question that it has not asked."""
    if not delivers(order):
        return nullcontext()
    from agentctl.operations.wait.rounds import ending_with

    return ending_with(streams.answers)


def _take_place(order: FarOrder, streams: Streams) -> None:
    if order.is_screen:
        os.setsid()
        fcntl.ioctl(streams.out, termios.TIOCSCTTY, 0)
    else:
        os.setpgid(0, 0)
    is_lazy = not order.is_screen and command_of(order) not in EAGER
    nothing = os.open(os.devnull, os.O_RDONLY) if is_lazy else -1
    for number, fd in enumerate((nothing if is_lazy else streams.given, streams.out, streams.err)):
        os.dup2(fd, number)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    os.environ.update(order.environ)
    ask_by(lambda: _until_printed(streams))
    _open_streams(order, LazyInput(streams, is_terminal=order.terminals[0]) if is_lazy else None)


def _open_streams(order: FarOrder, given: LazyInput | None) -> None:
    for number, name in ((1, "stdout"), (2, "stderr")):
        encoding = order.encoding if order.terminals[number] else "utf-8"
        with suppress(LookupError):
            stream = open(number, "w", encoding=encoding, errors="backslashreplace", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)
    raw = io.FileIO(0, closefd=False) if given is None else given
    sys.stdin = io.TextIOWrapper(io.BufferedReader(raw, _PIECE), encoding="utf-8", errors="surrogateescape")


def _until_printed(streams: Streams) -> None:
    os.write(streams.asks, PRINT)
    answer = os.read(streams.answers, 1)
    if answer == NO:
        raise Declined("it was not printed: another host was faster")
    if answer != YES:
        raise BrokenOff("the host that has called is gone")


class LazyInput(io.RawIOBase):
    """Standard input that is read on the other host only when the command reads it here.

    So a command that reads none takes none from the loop in which it is called.
    """

    def __init__(self, streams: Streams, *, is_terminal: bool) -> None:
        super().__init__()
        self._streams, self._is_terminal = streams, is_terminal

    def isatty(self) -> bool:
        """Return whether it is a terminal there: somebody can be asked."""
        return self._is_terminal

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read into a buffer; return how many bytes."""
        if not select.select([self._streams.given], [], [], 0)[0]:
            os.write(self._streams.asks, WANTS)
        data = os.read(self._streams.given, len(buffer))
        buffer[: len(data)] = data
        return len(data)


def set_size(terminal: int, columns: int, rows: int) -> None:
    """Set the size of a terminal; the command on it is told by the kernel."""
    size = struct.pack("HHHH", min(max(rows, 1), 9999), min(max(columns, 1), 9999), 0, 0)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)
