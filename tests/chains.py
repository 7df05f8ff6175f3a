"""Processes each of which is the parent of the next, as those above a caller are."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.life import known, lives
from tests.support import wait_until

#: Each starts the next, and all are named. The first adopts whoever is left behind, as a shim does
#: (PR_SET_CHILD_SUBREAPER).
_CHAIN = """
import ctypes, json, os, signal
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
pids = [os.getpid()]
while len(pids) < {size} and not os.fork():
    pids.append(os.getpid())
if len(pids) == {size}:
    print(json.dumps(pids), flush=True)
    signal.pause()
while True:
    os.wait()
"""


@contextmanager
def chain_of(size: int, descriptors: Sequence[int] = ()) -> Iterator[list[int]]:
    """Start so many processes, and give their pids, the lowest first; at the end of the block they are gone.

    Args:
        descriptors: What each has open, too.
    """
    line = [sys.executable, "-c", _CHAIN.format(size=size)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, pass_fds=descriptors) as first:
        assert first.stdout is not None
        pids = json.loads(first.stdout.readline())
        started = [known(pid) for pid in pids]
        yield pids[::-1]
        for one in started:
            if lives(one):
                os.kill(one.pid, signal.SIGKILL)


def end(pid: int) -> None:
    """End a process of a chain, and wait until its parent has reaped it."""
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: os.path.exists(f"/proc/{pid}"), accept=lambda there: not there, what=f"{pid} to be gone")
