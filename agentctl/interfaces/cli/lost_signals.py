"""Sends a signal again whose exception Python could not pass on.

In a callback of the import system, in a `__del__` or in an iterator that is closed, Python prints what a handler raises
and goes on: a Ctrl-C there would be lost, and the command would wait as if nothing had been pressed.
"""

from __future__ import annotations

import _thread
import os
import sys
import time

from agentctl.adapters.signals import signal
from agentctl.lean import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

#: By then, what could not be interrupted is over.
_LATER_S = 0.01


def send_lost_again() -> None:
    """From now on, send this process again each signal whose exception is lost."""
    sys.unraisablehook = _take_lost


def _take_lost(lost: UnraisableHookArgs) -> None:
    number = _signal_behind(lost.exc_value)
    if number is None:
        sys.__unraisablehook__(lost)
    else:
        # Not here: the handler would raise within this function, and that would be lost as well.
        _thread.start_new_thread(_send, (number,))


def _signal_behind(error: BaseException | None) -> int | None:
    """Return the signal that has raised an error; None if none has."""
    if isinstance(error, KeyboardInterrupt):
        return signal.SIGINT
    if isinstance(error, SystemExit) and isinstance(error.code, int) and error.code > 128:
        return error.code - 128
    return None


def _send(number: int) -> None:
    time.sleep(_LATER_S)
    os.kill(os.getpid(), number)
