"""Forks without end: every process of it forks others, lives for a moment and ends; all ignore INT and TERM.

Bounded all the same: at most 200 are alive at a time, 2,000 are started in all, and after 20 s none is left.
The bounds are two pipes filled with tokens. Every fork takes one of each; a process that ends by itself gives
the one for being alive back, one that is killed takes it along.
"""

from __future__ import annotations

import os
import random
import signal
import time

import bounded

MOST_ALIVE = 200
MOST_EVER = 2_000
LIFETIME_S = 20


def main() -> None:
    """Fill the pipes, then fork until the tokens or the time are spent."""
    bounded.live_at_most(LIFETIME_S)
    bounded.ignore(signal.SIGINT, signal.SIGTERM)
    # Children that nobody waits for must not stay as zombies.
    bounded.ignore(signal.SIGCHLD)
    ends_at = time.monotonic() + LIFETIME_S
    alive, ever = tokens(MOST_ALIVE), tokens(MOST_EVER)
    bounded.say("ready")
    while time.monotonic() < ends_at - 1:
        fork_one(alive, ever, ends_at)
        time.sleep(0.002)


def tokens(count: int) -> tuple[int, int]:
    """A pipe with so many bytes in it, both ends of which never block."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    os.write(writer, b"." * count)
    return reader, writer


def fork_one(alive: tuple[int, int], ever: tuple[int, int], ends_at: float) -> None:
    """Start one more process, if the tokens allow it."""
    if not take(alive):
        return
    if not take(ever):
        os.write(alive[1], b".")
        return
    try:
        child = os.fork()
    except OSError:  # the system's own limit is as good a bound
        os.write(alive[1], b".")
        return
    if child == 0:
        live(alive, ever, ends_at)


def live(alive: tuple[int, int], ever: tuple[int, int], ends_at: float) -> None:
    """A short life: some leave the session, most have children of their own."""
    left_s = int(ends_at - time.monotonic())
    if left_s < 1:
        os._exit(0)
    bounded.live_at_most(left_s)
    random.seed(os.getpid())
    if random.random() < 0.3:
        os.setsid()
    for _ in range(random.randrange(3)):
        time.sleep(random.uniform(0.05, 0.5))
        fork_one(alive, ever, ends_at)
    time.sleep(random.uniform(0.05, 0.5))
    os.write(alive[1], b".")
    os._exit(0)


def take(pipe: tuple[int, int]) -> bool:
    """Take a token out of a pipe, if there is one."""
    try:
        return bool(os.read(pipe[0], 1))
    except BlockingIOError:
        return False


if __name__ == "__main__":
    main()
