"""Dies by the signal SIG (a name or a number), sent to itself: ends without an exit code."""

from __future__ import annotations

import os
import resource
import signal
import sys

import bounded


def main() -> None:
    """Take the default action back, leave no core file, and send it."""
    bounded.live_at_most()
    name = sys.argv[1]
    number = signal.Signals(int(name)) if name.isdigit() else signal.Signals[name]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number not in {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    raise SystemExit(f"{number.name} did not kill this process")


if __name__ == "__main__":
    main()
