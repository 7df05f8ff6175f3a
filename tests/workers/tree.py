"""A tree of N processes, this one among them, all of which ignore SIGINT and SIGTERM.

Each has two children, as long as there are any left. Writes the N pids to FILE as a JSON list, this
process's first, and prints `ready` once all of them are there. Every third has a session of its own.
"""

from __future__ import annotations

import argparse
import os
import signal

import bounded


def main() -> None:
    """Become the root of the tree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, choices=range(1, 501), metavar="N")
    parser.add_argument("file", metavar="FILE")
    options = parser.parse_args()
    bounded.live_at_most()
    bounded.ignore(signal.SIGINT, signal.SIGTERM)
    reports, report = os.pipe()
    start_children(0, options.count, report)
    os.close(report)
    pids = [os.getpid(), *bounded.collect(reports).values()]
    bounded.publish(options.file, pids)
    bounded.say("ready")
    bounded.stay()


def start_children(parent: int, count: int, report: int) -> None:
    """Number the processes as a heap does: the children of k are 2k+1 and 2k+2."""
    for number in (2 * parent + 1, 2 * parent + 2):
        if number < count and os.fork() == 0:
            bounded.live_at_most()
            if number % 3 == 0:
                os.setsid()
            start_children(number, count, report)
            bounded.tell(report, str(number))
            bounded.stay()


if __name__ == "__main__":
    main()
