"""Carries out one command on a host as if it had been called here: its streams, its signals, its exit code.

What comes is written as it is to a file or a pipe, and made safe for a terminal; only `watch` gets the terminal itself.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from enum import IntEnum

from agentctl.adapters.files import write_all
from agentctl.domain.hosts import CommandHost
from agentctl.errors import Argument, AtTerminal, UsageError, WithArguments
from agentctl.interfaces.hosts import frames
from agentctl.interfaces.hosts.far_order import order_for, terminal_size
from agentctl.interfaces.hosts.frames import code_of
from agentctl.interfaces.hosts.host_link import READY, SAID, Link
from agentctl.interfaces.hosts.host_names import host_named
from agentctl.interfaces.hosts.terminal_filter import AFTER_SCREEN, AFTER_TABLE, TerminalFilter
from agentctl.lean import Any
from agentctl.operations.where.lineage import shown_caller

#: Needs the whole terminal; draws a table again and again.
_SCREENS, _DRAWING = frozenset({"watch"}), frozenset({"wait", "wait-all", "tree", "demo"})
_PIECE = 1 << 16


def relay(words: Sequence[str]) -> int:
    """Carry out a command line that begins with --host; return its exit code.

    Raises:
        UsageError: It names no host, or no command.
        HostError: The host does not answer, or the connection broke.
    """
    name, argv = _split(words)
    host = host_named(name)
    if not argv:
        raise UsageError("no command is given", hint=AtTerminal(f"agentctl --host {name} list"))
    terminals = (os.isatty(0), os.isatty(1), os.isatty(2))
    is_screen = argv[0] in _SCREENS and all(terminals) and "--help" not in argv and "--plain" not in argv
    relaying = _Relaying(host, argv, terminals, is_screen=is_screen, is_worker=shown_caller() is not None)
    with relaying.link:
        return relaying.run()


def _split(words: Sequence[str]) -> tuple[str, list[str]]:
    first, equals, name = words[0].partition("=")
    assert first == "--host"
    rest = list(words[1:])
    if not equals:
        name = rest.pop(0) if rest else ""
    if not name:
        raise UsageError(
            WithArguments(Argument("host"), " needs the name of a host"), hint=AtTerminal("agentctl --host HOST list")
        )
    return name, rest


class _Interrupted(KeyboardInterrupt):
    """Ctrl-C where there is no command yet, or a second one."""


class _Progress(IntEnum):
    """How far a command on a host has come; it decides what Ctrl-C does."""

    #: The host has not been given it.
    UNORDERED = 0
    ORDERED = 1
    #: It was interrupted once.
    INTERRUPTED = 2


class _Relaying:
    """One command on a host, and the streams and signals of this process."""

    def __init__(
        self,
        host: CommandHost,
        argv: list[str],
        terminals: tuple[bool, bool, bool],
        *,
        is_screen: bool,
        is_worker: bool,
    ) -> None:
        self._order = order_for(host, argv, terminals=terminals, is_screen=is_screen, is_worker=is_worker)
        draws = argv[0] in _DRAWING
        encoding = self._order.encoding
        self._filters = {
            fd: TerminalFilter(encoding, draws=draws) if terminals[fd] and not is_screen else None for fd in (1, 2)
        }
        self._progress = _Progress.UNORDERED
        #: The command reads its input; nobody reads what it prints.
        self._is_wanted = self._is_unread = False
        self.link = Link(host, may_prompt=_can_prompt())

    def run(self) -> int:
        """Return the exit code of the command."""
        with self._signals():
            for _, content in self.link.greet():
                self._say(content)
            if (warning := self.link.other_version()) is not None:
                self._note(f"warning: {warning}")
            self._progress = _Progress.ORDERED
            self.link.post(frames.ORDER, self._order.encoded())
            with _raw_terminal() if self._order.is_screen else contextlib.nullcontext():
                try:
                    return self._exchange()
                except BaseException:
                    self._tidy_terminal()
                    raise

    def _exchange(self) -> int:
        while True:
            for kind, content in self.link.receive([0] if self._order.is_screen or self._is_wanted else []):
                if kind == frames.EXIT:
                    self._end_output()
                    return code_of(content)
                self._take(kind, content)

    def _take(self, kind: bytes, content: bytes) -> None:
        if kind == frames.OUT:
            self._write_out(content)
        elif kind == frames.ERR:
            self._write(2, content, self._filters[2])
        elif kind == SAID:
            self._say(content)
        elif kind == frames.WANT:
            self._is_wanted = True
        elif kind == READY:
            self._is_wanted = False
            typed = _typed()
            if self._order.is_screen and not typed:
                _leave(signal.SIGHUP, None)  # The terminal is gone.
            self.link.post(frames.IN, typed)
        elif kind == frames.PRINT and not self._is_unread:
            self.link.post(frames.PRINTED)
        elif kind == frames.PRINT:
            self.link.post(frames.CLOSED, frames.OUT)

    # -- output

    def _write_out(self, content: bytes) -> None:
        try:
            self._write(1, content, self._filters[1])
        except BrokenPipeError:  # The command is told when it writes again, as at home.
            self._is_unread = True
            self.link.post(frames.CLOSED, frames.OUT)

    def _write(self, fd: int, content: bytes, safe: TerminalFilter | None) -> None:
        data = content if safe is None else safe.feed(content)
        try:
            write_all(fd, data)
        except OSError:
            if fd != 2:
                raise

    def _end_output(self) -> None:
        for fd, safe in self._filters.items():
            if safe is not None:
                self._write(fd, safe.feed(b"", is_last=True), None)

    def _say(self, said: bytes) -> None:
        """Pass on what ssh says."""
        self._write(2, said, TerminalFilter(self._order.encoding) if os.isatty(2) else None)

    def _note(self, line: str) -> None:
        self._write(2, f"{line}\n".encode(sys.stderr.encoding, "backslashreplace"), None)

    def _tidy_terminal(self) -> None:
        """End what a command that has ended in the middle has begun to draw."""
        if self._order.is_screen:
            self._write(1, AFTER_SCREEN, None)
        for fd, safe in self._filters.items():
            if safe is not None and safe.draws:
                self._write(fd, AFTER_TABLE, None)
                break

    # -- signals

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Pass on Ctrl-C and changes of the terminal's size; leave in order when this process is told to end."""
        wanted: dict[int, Any] = {signal.SIGINT: self._interrupt, signal.SIGWINCH: self._resize}
        if self._order.is_screen:
            wanted |= {signal.SIGTERM: _leave, signal.SIGHUP: _leave}
        before = {number: signal.signal(number, handler) for number, handler in wanted.items()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _interrupt(self, _number: int, _frame: object) -> None:
        if self._progress is not _Progress.ORDERED:
            raise _Interrupted
        self._progress = _Progress.INTERRUPTED
        self.link.post(frames.INTERRUPT)

    def _resize(self, _number: int, _frame: object) -> None:
        if self._order.is_screen and self._progress is not _Progress.UNORDERED:
            self.link.post(frames.RESIZE, b"%d %d" % terminal_size())


def _leave(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def _can_prompt() -> bool:
    """Return whether ssh can ask a person for a password, or whether a host's key is the right one."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return bool(os.environ.get("SSH_ASKPASS"))
    return True


def _typed() -> bytes:
    """Read what is there; nothing at the end of the input."""
    try:
        return os.read(0, _PIECE)
    except OSError:  # Closed, a folder, a terminal that is gone.
        return b""


@contextlib.contextmanager
def _raw_terminal() -> Iterator[None]:
    """Give each key to the other side as it is pressed, Ctrl-C among them."""
    before = termios.tcgetattr(0)
    try:
        tty.setraw(0, termios.TCSADRAIN)
        yield
    finally:
        with contextlib.suppress(termios.error):
            termios.tcsetattr(0, termios.TCSADRAIN, before)
        while select.select([0], [], [], 0)[0] and os.read(0, _PIECE):
            pass  # Answers to queries of the screen that come too late are not typed into the shell.
