"""The worker that is hardest to cancel: a tree of which every member ignores SIGINT and SIGTERM.

    leader ─┬─ child ── grandchild      holds stdout, as all but the daemon do
            └─ setsid                   a session and process group of its own
    daemon                              forked twice, a session of its own, no open file

Writes {"leader": PID, "child": PID, ...} to FILE and prints `ready` once all of them are there.
"""

from __future__ import annotations

import argparse
import os
import signal

import bounded


def main() -> None:
    """Become the leader and start the others."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="where the pids are written")
    options = parser.parse_args()
    bounded.live_at_most()
    bounded.ignore(signal.SIGINT, signal.SIGTERM)
    reports, report = os.pipe()
    start_child(report)
    start_setsid(report)
    bounded.daemonise(report, "daemon")
    os.close(report)
    bounded.publish(options.file, {"leader": os.getpid(), **bounded.collect(reports)})
    bounded.say("ready")
    bounded.stay()


def start_child(report: int) -> None:
    """Start a child with a child."""
    if os.fork():
        return
    bounded.live_at_most()
    if os.fork() == 0:
        bounded.live_at_most()
        bounded.tell(report, "grandchild")
        bounded.stay()
    bounded.tell(report, "child")
    bounded.stay()


def start_setsid(report: int) -> None:
    """Start a child that leaves the session and with it the process group."""
    if os.fork():
        return
    bounded.live_at_most()
    os.setsid()
    bounded.tell(report, "setsid")
    bounded.stay()


if __name__ == "__main__":
    main()
