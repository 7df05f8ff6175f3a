"""Prints `ready`, waits until FILE is there, prints `done` and ends: a worker whose end a test decides."""

from __future__ import annotations

import sys

import bounded


def main() -> None:
    """Wait for the one argument."""
    bounded.live_at_most()
    bounded.end_quietly_on_int()
    bounded.say("ready")
    bounded.wait_for_file(sys.argv[1])
    bounded.say("done")


if __name__ == "__main__":
    main()
