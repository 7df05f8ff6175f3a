"""Exits with 130 on SIGINT, while its child does not: the leader's exit is not the end of a worker.

Writes {"leader": PID, "child": PID} to FILE and prints `ready` when SIGINT may come. The child ends on
SIGTERM, with --term not on that either.
"""

from __future__ import annotations

import argparse
import os
import signal

import bounded


def main() -> None:
    """Start the child, then wait to be interrupted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", help="where the pids are written")
    parser.add_argument("--term", action="store_true", help="the child ignores SIGTERM too")
    options = parser.parse_args()
    bounded.live_at_most()
    bounded.end_quietly_on_int()
    reports, report = os.pipe()
    if os.fork() == 0:
        bounded.live_at_most()
        bounded.ignore(signal.SIGINT, *([signal.SIGTERM] if options.term else []))
        bounded.tell(report, "child")
        bounded.stay()
    os.close(report)
    bounded.publish(options.file, {"leader": os.getpid(), **bounded.collect(reports)})
    bounded.say("ready")
    bounded.stay()


if __name__ == "__main__":
    main()
