"""Ends at once and as it should, while its child is still on its way out, which takes the kernel a while.

Linux waits for every inotify instance that an ending process has (8 to 24 ms each), after its memory is gone.
"""

from __future__ import annotations

import ctypes
import os
import time
from pathlib import Path

import bounded

INSTANCES = 40
PF_EXITING = 0x4


def main() -> None:
    """Start the child, and end as soon as it is in exit(2)."""
    bounded.live_at_most()
    child = os.fork()
    if child == 0:
        watch_much()
        os._exit(0)
    while not is_exiting(child):
        time.sleep(bounded.POLL_S / 10)
    os._exit(0)


def watch_much() -> None:
    """Make inotify instances; where the person has no more to spare, fewer."""
    libc = ctypes.CDLL(None)
    for _ in range(INSTANCES):
        libc.inotify_add_watch(libc.inotify_init1(os.O_CLOEXEC), b"/", 0x2)


def is_exiting(pid: int) -> bool:
    """Return whether a child is in exit(2), or has left it."""
    flags = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[6]
    return bool(int(flags) & PF_EXITING)


if __name__ == "__main__":
    main()
