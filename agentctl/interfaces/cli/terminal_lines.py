"""The lines that a person types at this terminal while a command goes on, and what is printed above them meanwhile.

The terminal keeps its own mode, in which it takes whole lines: so it is as it was found, however this process ends. And
only the foreground reads: a job in the background would be stopped, or take the keys of the shell.
"""

from __future__ import annotations

import contextlib
import os
import sys
import termios

from agentctl.adapters.processes import wait_readable
from agentctl.adapters.signals import signal
from agentctl.adapters.wake_pipe import WakePipe
from agentctl.domain.text.terminal_rows import rows_within

_DUMB = frozenset({"", "dumb", "unknown"})
#: The longest line that a terminal takes is shorter.
_LONGEST = 1 << 16
#: Moves the row with the cursor down by one, also at the bottom of the terminal, and goes to the row that is free then;
#: and back to the place in the row that was moved. What a person has typed stays, with the cursor behind it.
_ABOVE, _BACK = "\x1bD\x1b[A\x1b7\r\x1b[L", "\x1b8\x1b[B"
#: Takes away what stands in a row: keys that came too early.
_CLEAR = "\r\x1b[K"


class TerminalLines:
    """What is typed at the terminal that all three standard streams are."""

    def __init__(self) -> None:
        self._is_dumb = os.environ.get("TERM", "") in _DUMB
        #: What a line is asked for with; None where none is.
        self._prompt: str | None = None
        self._was_resumed, self._wake = False, WakePipe()
        self._handler = signal.signal(signal.SIGCONT, self._resume)

    def _resume(self, *_: object) -> None:
        self._was_resumed, self._prompt = True, None
        self._wake.wake()

    @property
    def is_ours(self) -> bool:
        """Whether this process is in the foreground, and the terminal takes lines."""
        try:
            group, mode = os.getpgrp(), termios.tcgetattr(0)[3]
            return all(os.tcgetpgrp(fd) == group for fd in (0, 1, 2)) and bool(mode & termios.ICANON)
        except (OSError, termios.error):
            return False  # It is not the terminal of this session, or no longer there.

    @property
    def size(self) -> tuple[int, int]:
        """The columns and rows of the terminal; 80 and 24 where it does not know."""
        columns, rows = os.get_terminal_size(2)
        return columns or 80, rows or 24

    def was_resumed(self) -> bool:
        """Return whether this process was stopped and goes on, since the last call."""
        if not self._was_resumed:
            return False
        self._was_resumed = False
        self._wake.drain()
        return True

    def begin(self, prompt: str) -> None:
        """Forget what was typed so far, and ask for a line."""
        self._forget_typed()
        self._prompt = prompt
        self._write(prompt if self._is_dumb else _CLEAR + prompt)

    def take(self) -> str | None:
        """Return the line that was asked for and typed; None where there is none yet. The end of the input is empty.

        What was pasted may be several lines.
        """
        if self._prompt is None or not (wait_readable([0], 0) and self.is_ours):
            return None
        stops, typed = signal.signal(signal.SIGTTIN, signal.SIG_IGN), b""
        try:
            while (more := os.read(0, _LONGEST)) and wait_readable([0], 0):
                typed += more
        except OSError:
            return None  # It has come into the background, or the terminal is gone, since this was looked at.
        finally:
            signal.signal(signal.SIGTTIN, stops)
        typed += more
        self._prompt = None
        self._forget_typed()  # The begun line behind what was pasted, which would be typed into the shell.
        self._write("\n" if not typed.endswith(b"\n") else "" if self._is_dumb else _CLEAR)
        return typed.removesuffix(b"\n").decode("utf-8", "surrogateescape")

    def _forget_typed(self) -> None:
        with contextlib.suppress(termios.error):
            termios.tcflush(0, termios.TCIFLUSH)

    def leave(self) -> None:
        """Ask for no line any more, and forget the begun one: it is not for the shell."""
        if self._prompt is not None and self.is_ours:
            self._forget_typed()
            self._write("\n")
        self._prompt = None

    def descriptors(self) -> list[int]:
        """Return what becomes readable once a line was typed, or once this process was resumed."""
        return [self._wake.fd] if self._prompt is None or not self.is_ours else [self._wake.fd, 0]

    def print_above(self, line: str) -> None:
        """Print a line above the one that is being typed."""
        if self._prompt is None or not self.is_ours:
            self._write(f"{line}\n")
        elif self._is_dumb:
            self._write(f"\n{line}\n{self._prompt}")
        else:
            rows = rows_within(line.expandtabs(4), self.size[0] - 1)
            self._write("".join(f"{_ABOVE}{row}{_BACK}" for row in rows))

    def close(self) -> None:
        """Ask for no line any more, and let signals be as they were."""
        self.leave()
        signal.signal(signal.SIGCONT, self._handler)
        self._wake.close()

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
