"""Ignores SIGTERM (with --int SIGINT too) and stays: ends by SIGKILL alone. Prints `ready` when it does."""

from __future__ import annotations

import argparse
import signal

import bounded


def main() -> None:
    """Ignore, say so, stay."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--int", action="store_true", help="ignore SIGINT too")
    options = parser.parse_args()
    bounded.live_at_most()
    # Without --int SIGINT is to kill; Python would turn it into a traceback.
    signal.signal(signal.SIGINT, signal.SIG_IGN if options.int else signal.SIG_DFL)
    bounded.ignore(signal.SIGTERM)
    bounded.say("ready")
    bounded.stay()


if __name__ == "__main__":
    main()
