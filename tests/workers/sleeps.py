"""Prints `ready` and sleeps for SECONDS; ends on SIGINT at once. The worker that does as it is told."""

from __future__ import annotations

import sys
import time

import bounded


def main() -> None:
    """Sleep, but not longer than any worker here may live."""
    bounded.live_at_most()
    bounded.end_quietly_on_int()
    bounded.say("ready")
    time.sleep(float(sys.argv[1]))


if __name__ == "__main__":
    main()
