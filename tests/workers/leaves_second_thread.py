"""Ends at once and as it should, but leaves a child whose first thread has ended: /proc calls it a zombie.

Another thread of it runs on. Writes {"leader": PID, "child": PID} to FILE before it ends.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import threading
import time
from pathlib import Path

import bounded

#: exit(2) of one thread alone: the C library's exit ends them all.
SYS_EXIT = {"x86_64": 60, "aarch64": 93}[os.uname().machine]


def main() -> None:
    """Start the child, and end once its first thread has."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", help="where the pids are written")
    options = parser.parse_args()
    bounded.live_at_most()
    child = os.fork()
    if child == 0:
        bounded.live_at_most()
        threading.Thread(target=signal.pause).start()
        ctypes.CDLL(None).syscall(SYS_EXIT, 0)
    while state_of(child) != "Z":
        time.sleep(bounded.POLL_S)
    bounded.publish(options.file, {"leader": os.getpid(), "child": child})
    os._exit(0)


def state_of(pid: int) -> str:
    """Return the letter of a process's state."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]


if __name__ == "__main__":
    main()
