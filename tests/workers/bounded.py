"""What the workers of the tests share: an end that comes whatever happens, and the telling of pids."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

LIFETIME_S = 120
POLL_S = 0.01


def live_at_most(seconds: int = LIFETIME_S) -> None:
    """Let the kernel end this process in time: needs no thread, and no handler that could be stuck.

    An alarm is kept over exec and lost at a fork, so every forked child calls this again.
    """
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    signal.alarm(seconds)


def ignore(*signals: signal.Signals) -> None:
    """Ignore signals; children inherit it."""
    for number in signals:
        signal.signal(number, signal.SIG_IGN)


def end_quietly_on_int() -> None:
    """Exit with 130 on SIGINT, at once and without a traceback."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))


def say(text: str) -> None:
    """Print a line that is on its way before this returns."""
    print(text, flush=True)


def publish(path: str, value: Any) -> None:
    """Write JSON that is either whole or not there."""
    target = Path(path).resolve()
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    draft.write_text(json.dumps(value), encoding="utf-8")
    draft.replace(target)


def wait_for_file(path: str) -> None:
    """Return as soon as there is a file with this name."""
    while not os.path.exists(path):
        time.sleep(POLL_S)


def stay() -> None:
    """Do nothing until a signal ends this process."""
    while True:
        signal.pause()


def daemonise(report: int, name: str) -> None:
    """Start a process that nothing ties to this one: a session of its own, no parent, no open file.

    It writes `name pid` to the descriptor `report` when it is what it is to be. Signals that are ignored
    here are ignored there.
    """
    middle = os.fork()
    if middle:
        os.waitpid(middle, 0)
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    live_at_most()
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    os.close(nothing)
    tell(report, name)
    stay()


def tell(report: int, name: str) -> None:
    """Write one line `name pid` to a pipe, and let go of it."""
    os.write(report, f"{name} {os.getpid()}\n".encode())
    os.close(report)


def collect(reports: int) -> dict[str, int]:
    """Read the lines that `tell` wrote, until every process that could write one has let go of the pipe."""
    with os.fdopen(reports) as lines:
        return {name: int(pid) for name, pid in (line.split() for line in lines)}
