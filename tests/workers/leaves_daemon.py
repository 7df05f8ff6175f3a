"""Ends at once and as it should, but leaves a daemon behind: what agents do that forget a server.

Writes {"leader": PID, "daemon": PID} to FILE before it ends. The daemon ends on SIGTERM, with --stubborn
only on SIGKILL.
"""

from __future__ import annotations

import argparse
import os
import signal

import bounded


def main() -> None:
    """Start the daemon and end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", help="where the pids are written")
    parser.add_argument("--code", type=int, default=0, help="the exit code")
    parser.add_argument("--stubborn", action="store_true", help="the daemon ignores SIGINT and SIGTERM")
    options = parser.parse_args()
    bounded.live_at_most()
    if options.stubborn:
        bounded.ignore(signal.SIGINT, signal.SIGTERM)
    reports, report = os.pipe()
    bounded.daemonise(report, "daemon")
    os.close(report)
    bounded.publish(options.file, {"leader": os.getpid(), **bounded.collect(reports)})
    bounded.say("left a daemon")
    raise SystemExit(options.code)


if __name__ == "__main__":
    main()
