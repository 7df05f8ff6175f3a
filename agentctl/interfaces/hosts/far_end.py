"""What ssh starts on a host: takes one order, has it carried out, and sends back what comes of it.

It stands between the command and the connection. If that breaks, the command is interrupted as by Ctrl-C: waits end,
nothing that was not printed over there counts as given, and workers go on.
"""

from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import termios
import tty
from collections.abc import Iterator

import agentctl
from agentctl.adapters.clock import monotonic
from agentctl.adapters.descriptors import write_some
from agentctl.adapters.files import write_all
from agentctl.domain.state_tables.offer_state import OfferNews, OfferState, OfferStep, offer_after
from agentctl.errors import AtTerminal, Refused, UsageError
from agentctl.interfaces.hosts import frames
from agentctl.interfaces.hosts.far_command import (
    EAGER,
    NO,
    PRINT,
    WANTS,
    YES,
    Main,
    Streams,
    carry_out_order,
    command_of,
    delivers,
    set_size,
)
from agentctl.interfaces.hosts.far_order import FarOrder, parse_order
from agentctl.interfaces.hosts.frames import Frames, frame, hello_line

_ORDER_S = 60.0
#: How much waits to be sent before the command has to wait; how much was typed that it has not read.
_MOST_WAITING, _MOST_TYPED, _PIECE = 1 << 18, 1 << 20, 1 << 16
#: Between the signals for a command whose connection is gone; and how long its streams may outlive it.
_GRACE_S, _LINGER_S = 5.0, 1.0


class _Gone(Exception):
    """The connection is gone."""


def serve_order(main: Main) -> int:
    """Take an order from standard input and have it carried out.

    Args:
        main: Runs a command line.
    """
    if os.isatty(0):
        raise Refused(
            "this is the far end of a connection, which ssh starts for another agentctl",
            hint=AtTerminal("agentctl --help"),
        )
    given, sent = os.dup(0), os.dup(1)
    with open(os.devnull, "r+b") as nothing:
        for fd in (0, 1):
            os.dup2(nothing.fileno(), fd)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # Its standard input tells, too, and the command is ended in order.
    os.set_blocking(sent, True)
    write_all(sent, hello_line(agentctl.__version__))
    connection = Frames(frames.TO_FAR)
    order, rest = _take_order(given, connection)
    if order is None:
        return 0
    command = _start(order, main, (given, sent))
    with contextlib.suppress(_Gone):
        _Exchange(order, command, connection, given, sent).run(rest)
    return 0


def _take_order(given: int, connection: Frames) -> tuple[FarOrder | None, list[tuple[bytes, bytes]]]:
    """Return the order, and what came behind it; None if none comes."""
    until = monotonic() + _ORDER_S
    poll = select.poll()
    poll.register(given, select.POLLIN)
    while (left := until - monotonic()) > 0 and poll.poll(left * 1000):
        data = os.read(given, _PIECE)
        if not data:
            return None, []
        try:
            came = list(connection.feed(data))
            ordered = [content for kind, content in came if kind == frames.ORDER]
            if ordered:
                return parse_order(ordered[0]), [one for one in came if one[0] != frames.ORDER]
        except ValueError as error:
            raise UsageError(f"what was sent to this far end is not an order: {error}") from error
    return None, []


# -- the command -------------------------------------------------------------------------------------------------------


class _Typed:
    """What was typed on the other side, on its way to the command.

    Attributes:
        waiting: What the command has not read yet; empty once its input is closed.
        fd: The command's input; -1 once it is closed.
    """

    def __init__(self, fd: int, *, is_screen: bool) -> None:
        self.fd, self.waiting = fd, bytearray()
        self._is_screen, self._is_over = is_screen, False

    def take(self, content: bytes) -> bool:
        """Take what was typed, nothing at the end of the input; return whether the command may be given more."""
        if self.fd < 0:
            return False
        self.waiting += content
        self._is_over = self._is_over or not content
        return self.pass_on()

    def pass_on(self) -> bool:
        """Give the command what waits; return whether it may be given more."""
        try:
            if not write_some(self.fd, self.waiting):
                return False
        except OSError:  # It reads no more.
            self.waiting.clear()
            self._is_over = True
        if not self._is_over or self._is_screen:  # A screen is the same terminal in both directions.
            return True
        os.close(self.fd)
        self.fd = -1
        return False


class _Command:
    """The process that carries the order out, and this side of its streams."""

    def __init__(self, pid: int, typed: _Typed, outs: dict[int, bytes], asked: int, answers: int, screen: int) -> None:
        self.pid, self.typed, self.outs = pid, typed, outs
        self.asked, self.answers, self.screen = asked, answers, screen

    def signal(self, number: int) -> None:
        """Send a signal to it and to what it has started in its group, as a terminal would."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def code(self) -> int:
        """Wait for it; return its exit code as a shell has it."""
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return status if status >= 0 else 128 - status


def _start(order: FarOrder, main: Main, others: tuple[int, ...]) -> _Command:
    ours: dict[int, bytes] = {}
    screen = -1
    if order.is_screen:
        screen, theirs = _terminal(order, is_raw=False)
        ours[screen] = frames.OUT
        given, streams_in, out, err = os.dup(screen), theirs, theirs, theirs
    else:
        streams_in, given = os.pipe()
        # A terminal passes on later than it is written to: what has to be printed for certain goes through a pipe.
        _, is_out, is_err = (False, False, False) if delivers(order) else order.terminals
        mine, out = _terminal(order, is_raw=True) if is_out else os.pipe()
        ours[mine] = frames.OUT
        if is_out and is_err:
            err = out
        else:
            mine, err = _terminal(order, is_raw=True) if is_err else os.pipe()
            ours[mine] = frames.ERR
    asked, asks = os.pipe()
    answers, answering = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # Until the command can be interrupted as at home.
    pid = os.fork()
    if pid == 0:
        for fd in {*others, *ours, given, asked, answering}:
            os.close(fd)
        carry_out_order(order, Streams(streams_in, out, err, asks, answers), main)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    if not order.is_screen:
        with contextlib.suppress(OSError):  # The command does this, too: whoever is first.
            os.setpgid(pid, pid)
    for fd in {streams_in, out, err, asks, answers}:
        os.close(fd)
    for fd in (given, asked, *ours):
        os.set_blocking(fd, False)
    return _Command(pid, _Typed(given, is_screen=order.is_screen), ours, asked, answering, screen)


def _terminal(order: FarOrder, *, is_raw: bool) -> tuple[int, int]:
    """Return both ends of a pseudo-terminal.

    Args:
        is_raw: It passes on what is written as it is; the terminal of the other side does the rest.
    """
    leader, follower = pty.openpty()
    if is_raw:
        tty.setraw(follower, termios.TCSANOW)
    set_size(follower, *order.size)
    return leader, follower


# -- the exchange ------------------------------------------------------------------------------------------------------


class _Exchange:
    """Passes on what the command and the other side say to each other."""

    def __init__(self, order: FarOrder, command: _Command, connection: Frames, given: int, sent: int) -> None:
        self._order, self._command, self._connection = order, command, connection
        self._given, self._sent = given, sent
        os.set_blocking(sent, False)
        self._to_send = bytearray()
        self._offer = OfferState.NONE
        self._heard_at = self._beat_at = monotonic()

    def run(self, came: list[tuple[bytes, bytes]]) -> None:
        """Go on until the command has ended and all was sent.

        Raises:
            _Gone: The connection broke; the command was ended.
        """
        try:
            self._want_more()
            self._take(came)
            while self._command.asked >= 0:
                self._round()
            self._finish()
        except _Gone:
            self._end_command()
            raise

    def _round(self) -> None:
        """Wait for anything to do, and do it: what the command has printed first, then what it says about it."""
        ready = self._poll()
        for fd in [fd for fd in self._command.outs if ready.get(fd)]:
            self._take_output(fd)
        if self._command.asked in ready:
            self._take_wishes()
        if self._given in ready:
            data = os.read(self._given, _PIECE)
            if not data:
                raise _Gone
            self._heard_at = monotonic()
            self._take(list(self._fed(data)))
        if self._command.typed.fd in ready and self._command.typed.pass_on():
            self._want_more()
        self._send()
        now = monotonic()
        if now - self._heard_at > self._order.silent_s:
            raise _Gone
        if now - self._beat_at >= frames.BEAT_S and not self._to_send:
            self._to_send += frame(frames.BEAT)
            self._beat_at = now
            self._send()

    def _fed(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        try:
            yield from self._connection.feed(data)
        except ValueError as error:
            raise _Gone from error

    def _poll(self) -> dict[int, int]:
        poll, typed = select.poll(), self._command.typed
        if len(typed.waiting) < _MOST_TYPED:
            poll.register(self._given, select.POLLIN)
        poll.register(self._command.asked, select.POLLIN)
        if len(self._to_send) < _MOST_WAITING:
            for fd in self._command.outs:
                poll.register(fd, select.POLLIN)
        if self._to_send:
            poll.register(self._sent, select.POLLOUT)
        if typed.waiting:
            poll.register(typed.fd, select.POLLOUT)
        return dict(poll.poll(frames.BEAT_S * 1000))

    # -- from the command

    def _take_output(self, fd: int) -> None:
        """Read once from a stream of the command; forget it where it has ended."""
        kind = self._command.outs[fd]
        try:
            data = os.read(fd, _PIECE)
        except BlockingIOError:
            return
        except OSError:  # EIO: the last one that had this terminal is gone.
            data = b""
        if not data:
            os.close(fd)
            del self._command.outs[fd]
        for one in frames.frames_of(kind, data):
            self._to_send += one

    def _take_wishes(self) -> None:
        wishes = os.read(self._command.asked, _PIECE)
        if not wishes:
            os.close(self._command.asked)
            self._command.asked = -1
            return
        for wish in wishes:
            if wish == WANTS[0]:
                self._to_send += frame(frames.WANT)
            elif wish == PRINT[0]:
                self._drain()
                self._offer_becomes(OfferNews.ASKED)

    def _drain(self) -> None:
        """Take all that the command has printed so far."""
        for fd in list(self._command.outs):
            while fd in self._command.outs and select.select([fd], [], [], 0)[0]:
                self._take_output(fd)

    # -- from the other side

    def _take(self, came: list[tuple[bytes, bytes]]) -> None:
        for kind, content in came:
            if kind == frames.IN:
                if self._command.typed.take(content):
                    self._want_more()
            elif kind == frames.INTERRUPT:
                self._command.signal(signal.SIGINT)
            elif kind == frames.RESIZE and self._command.screen >= 0:
                with contextlib.suppress(ValueError, OSError):
                    columns, rows = map(int, content.split())
                    set_size(self._command.screen, columns, rows)
            elif kind == frames.PRINTED:
                self._offer_becomes(OfferNews.PRINTED)
            elif kind == frames.DECLINED:
                self._offer_becomes(OfferNews.REFUSED)
            elif kind == frames.CLOSED:
                self._close(content)

    def _offer_becomes(self, news: OfferNews) -> None:
        self._offer, step = offer_after(self._offer, news)
        match step:
            case OfferStep.ASK:
                self._to_send += frame(frames.PRINT)
            case OfferStep.YES | OfferStep.NO:
                self._answer(YES if step is OfferStep.YES else NO)
            case OfferStep.HANG_UP:
                self._close_answers()

    def _answer(self, answer: bytes) -> None:
        with contextlib.suppress(OSError):
            os.write(self._command.answers, answer)

    def _close(self, kind: bytes) -> None:
        """Nobody reads a stream of the command any more: its next write fails, as at home."""
        for fd in [fd for fd, one in self._command.outs.items() if one == kind and fd != self._command.screen]:
            os.close(fd)
            del self._command.outs[fd]
        if kind == frames.OUT:
            self._offer_becomes(OfferNews.CLOSED)

    def _close_answers(self) -> None:
        if self._command.answers >= 0:
            os.close(self._command.answers)
            self._command.answers = -1

    def _want_more(self) -> None:
        """Ask for more of what is typed, for a command that reads all of it."""
        if command_of(self._order) in EAGER:
            self._to_send += frame(frames.WANT)

    # -- to the other side

    def _send(self) -> None:
        try:
            write_some(self._sent, self._to_send)
        except OSError as error:
            raise _Gone from error

    def _finish(self) -> None:
        """Send the rest of what the ended command has printed, and its exit code."""
        code = self._command.code()
        until = monotonic() + _LINGER_S
        while self._command.outs and (left := until - monotonic()) > 0:
            for fd in select.select(list(self._command.outs), [], [], left)[0]:
                self._take_output(fd)
        self._to_send += frame(frames.EXIT, str(code).encode())
        while self._to_send:
            poll = select.poll()
            poll.register(self._sent, select.POLLOUT)
            poll.register(self._given, 0)
            if not poll.poll(self._order.silent_s * 1000):
                raise _Gone
            self._send()

    def _end_command(self) -> None:
        """End a command whose connection is gone, and wait for it."""
        self._close_answers()
        for fd in self._command.outs:
            os.close(fd)
        self._command.outs.clear()
        if self._command.asked < 0:
            return
        numbers = (signal.SIGHUP, signal.SIGINT) if self._order.is_screen else (signal.SIGINT,)
        for number in (*numbers, signal.SIGTERM, signal.SIGKILL):
            self._command.signal(number)
            until = monotonic() + (0.0 if number == signal.SIGHUP else _GRACE_S)
            while (left := until - monotonic()) > 0:
                if select.select([self._command.asked], [], [], left)[0] and not os.read(self._command.asked, _PIECE):
                    self._command.code()
                    return
