"""Works for SECONDS, exits with CODE, and keeps account of it in FOLDER, by which a test knows what is true.

Whoever is at work has one of the locks `place-1`, `place-2`, ... of which there are as many as may be at work at once:
the kernel frees it with the process. The file `ledger` has a line for each start and each end, and for each start that
found no place. With --stubborn it ignores the signals that can be ignored.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import bounded


@contextmanager
def at_work(folder: str) -> Iterator[None]:
    """Have a place while at work; `exit` is written by who ends with a code."""
    place = _place(folder)
    note(folder, "start" if place is not None else "over")
    try:
        yield
    finally:
        if place is not None:
            os.close(place)


def _place(folder: str) -> int | None:
    for name in sorted(os.listdir(folder)):
        if name.startswith("place-"):
            place = os.open(f"{folder}/{name}", os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(place)
            else:
                return place
    return None


def note(folder: str, what: str) -> None:
    """Append a line by one write."""
    ledger = os.open(f"{folder}/ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(ledger, f"{os.environ['AGENTCTL_INSTANCE']} {what}\n".encode())
    os.close(ledger)


def main() -> int:
    """Work."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("seconds", type=float)
    parser.add_argument("code", type=int)
    parser.add_argument("--stubborn", action="store_true")
    options = parser.parse_args()
    bounded.live_at_most()
    if options.stubborn:
        bounded.ignore(signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    else:
        bounded.end_quietly_on_int()
    with at_work(options.folder):
        time.sleep(options.seconds)
        note(options.folder, f"exit {options.code}")
    return int(options.code)


if __name__ == "__main__":
    sys.exit(main())
