"""The agent program as a child process: its output, its input, its end, and its deadlines.

asyncio's own subprocesses are not used: in some versions of Python, their `wait` returns only once every pipe is
closed, and a program's background processes keep its pipes open.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable

from agentctl.adapters.descriptors import write_some
from agentctl.drivers.dialogue import AgentOutcome

_CHUNK = 1 << 16
#: How long the host waits for more output after the program has ended: others may hold its pipes open.
_DRAIN_S = 1.0

OnChunk = Callable[[bytes], None]


class Program:
    """A running program. `ended` resolves to its exit code (-n for signal n) once its output has been read.

    Args:
        on_silence: Called when it closes its standard output but lives on.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], on_output: OnChunk, on_errors: OnChunk, on_silence: Callable[[], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.add_signal_handler(signal.SIGCHLD, self._look)
        self.process = process
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.ended: asyncio.Future[int] = self._loop.create_future()
        self._input = self.process.stdin.fileno()
        self._unwritten = bytearray()
        #: Nothing more is written to it: the host has hung up, or the program has closed its input.
        self.is_hung_up = False
        self._outputs = {self.process.stdout.fileno(): on_output, self.process.stderr.fileno(): on_errors}
        self._stdout, self._on_silence = self.process.stdout.fileno(), on_silence
        os.set_blocking(self._input, False)
        for fd in self._outputs:
            os.set_blocking(fd, False)
            self._loop.add_reader(fd, self._read, fd)
        self._look()  # It may have ended before the handler was set.

    # -- input ---------------------------------------------------------------------------------------------------

    def say(self, data: bytes) -> None:
        """Write to its input; what the pipe does not take is written later. After `hang_up`, do nothing."""
        if not self.is_hung_up:
            self._unwritten += data
            self._write()

    def hang_up(self) -> None:
        """Close its input once everything is written."""
        if not self.is_hung_up:
            self.is_hung_up = True
            self._write()

    def _write(self) -> None:
        try:
            if not write_some(self._input, self._unwritten):
                self._loop.add_writer(self._input, self._write)
                return
        except OSError:  # It has closed its input, or is gone.
            self._unwritten.clear()
            self.is_hung_up = True
        self._loop.remove_writer(self._input)
        if self.is_hung_up and self.process.stdin is not None and not self.process.stdin.closed:
            self.process.stdin.close()

    # -- output and end ------------------------------------------------------------------------------------------

    def _read(self, fd: int) -> None:
        try:
            chunk = os.read(fd, _CHUNK)
        except BlockingIOError:
            return
        if chunk:
            self._outputs[fd](chunk)
        else:
            self._shut(fd)

    def _shut(self, fd: int) -> None:
        self._loop.remove_reader(fd)
        del self._outputs[fd]
        self._look()
        if self.process.returncode is None:
            if fd == self._stdout:
                self._on_silence()
        elif not self._outputs:
            self._report_end()

    def _look(self) -> None:
        if self.process.returncode is None and self.process.poll() is not None:
            self.is_hung_up = True
            self._write()
            if self._outputs:
                self._loop.call_later(_DRAIN_S, self._report_end)
            else:
                self._report_end()

    def _report_end(self) -> None:
        if not self.ended.done():
            for fd in list(self._outputs):
                self._loop.remove_reader(fd)
            self.ended.set_result(self.process.returncode or 0)

    def signal(self, number: int) -> None:
        """Send a signal to its process group, unless it has been reaped: until then no other process has its pid."""
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, number)


#: How long a program may take to end after a SIGTERM, before it gets SIGKILL.
_TERMINATE_S = 3.0


class Patience:
    """The deadlines of one run of an agent program.

    Args:
        lingers_s: How long it may take to end after a hang-up, before it gets SIGTERM.
    """

    def __init__(self, program: Program, lingers_s: float) -> None:
        self._program, self._lingers_s = program, lingers_s
        self._loop = asyncio.get_running_loop()
        self._closing: asyncio.TimerHandle | None = None
        self._expected: asyncio.TimerHandle | None = None

    def hang_up(self) -> None:
        """Close the program's input; terminate the program if it does not end in time."""
        self._program.hang_up()
        if self._closing is None:
            self._closing = self._loop.call_later(self._lingers_s, self.terminate)

    def terminate(self) -> None:
        """Send SIGTERM, and SIGKILL if the program does not end in time."""
        self._program.signal(signal.SIGTERM)
        self._closing = self._loop.call_later(_TERMINATE_S, self._program.signal, signal.SIGKILL)

    def retrying(self, ceiling_s: float, outcome: AgentOutcome, stop: Callable[[AgentOutcome], None]) -> None:
        """Stop the program with this outcome, unless it makes progress before the ceiling."""
        self.expect(ceiling_s, outcome._replace(message=f"{outcome.message} (it retried for {ceiling_s:g} s)"), stop)

    def expect(self, seconds: float, outcome: AgentOutcome, stop: Callable[[AgentOutcome], None]) -> None:
        """Stop the program with this outcome, unless it makes progress in time; the first such deadline counts."""
        if self._expected is None:
            self._expected = self._loop.call_later(seconds, stop, outcome)

    def got_on(self) -> None:
        """Cancel the deadline: the program made progress, or is ending."""
        if self._expected is not None:
            self._expected.cancel()
            self._expected = None
